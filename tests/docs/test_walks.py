"""The walks through the code in docs/architecture.md name functions that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/architecture.md").read_text()
STEPS = re.findall(r"`([\w/]+\.(?:py|sql)):([\w.]+)`", PAGE[PAGE.index("## Walk: ") :])


@pytest.mark.parametrize(("file", "name"), STEPS)
def test_a_step_of_a_walk_is_in_the_file_that_it_names(file, name):
    found = (
        [ROOT / file] if (ROOT / file).exists() else [path for path in ROOT.glob(f"*/**/{file}") if in_product(path)]
    )

    assert found, file
    for part in name.split("."):
        defined = (
            rf"^-- name: {part}\b" if file.endswith(".sql") else rf"^\s*(?:async )?(?:def|class) {part}\b|^{part}\b.* ="
        )
        assert any(re.search(defined, path.read_text(), re.MULTILINE) for path in found), f"{file}: {part}"


def in_product(path):
    return path.relative_to(ROOT).parts[0] in {"api", "orchestration", "sql", "upstream"}


def test_there_are_two_walks():
    assert len(re.findall(r"(?m)^## Walk: ", PAGE)) == 2
    assert len(STEPS) > 20
