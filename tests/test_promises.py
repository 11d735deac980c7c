"""Rules that the repository itself must keep."""

import re
import subprocess
from pathlib import Path

import pytest

from config import settings

ROOT = Path(__file__).parent.parent


def tracked() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return [ROOT / name for name in listed if (ROOT / name).is_file()]


def test_every_setting_stands_in_the_example_file():
    assert (ROOT / ".env.example").read_text() == settings.example(), "run: python -m settings > .env.example"


def test_every_setting_says_what_it_means():
    unexplained = [name for name, field in settings.Settings.model_fields.items() if not field.description]

    assert unexplained == []


def test_every_module_says_what_it_is():
    silent = [
        str(path.relative_to(ROOT))
        for path in tracked()
        if path.suffix == ".py"
        and path.relative_to(ROOT).parts[0] in {"api", "cli", "orchestration", "sql", "upstream"}
        and path.stat().st_size
        and not path.read_text().lstrip().startswith(('"""', 'r"""', "#!"))
    ]

    assert silent == []


def test_links_in_the_documentation_lead_somewhere():
    broken = [
        f"{page.relative_to(ROOT)}: {target}"
        for page in tracked()
        if page.suffix == ".md"
        for target in re.findall(r"\]\((?!https?:|mailto:|#)([^)#\s]+)", page.read_text())
        if not (page.parent / target).exists()
    ]

    assert broken == []


def test_the_alembic_folder_does_not_hide_the_library():
    assert not (ROOT / "alembic" / "__init__.py").exists()


def pinned(lock):
    return set(re.findall(r"^[a-z0-9]\S*==\S+", lock, re.MULTILINE))


def test_what_runs_is_what_developers_have_without_their_tools():
    runs, all_ = (pinned((ROOT / name).read_text()) for name in ("requirements.lock", "requirements-dev.lock"))

    assert runs < all_
    assert {"pytest", "mypy", "web3"} <= {each.partition("==")[0] for each in all_ - runs}


@pytest.mark.parametrize("name", ["requirements.lock", "requirements-dev.lock"])
def test_packages_are_pinned_by_hash_and_name_no_registry(name):
    lock = (ROOT / name).read_text()
    requirements = pinned(lock)

    assert len(requirements) > 50
    assert not re.search(r"^(--|-i |-f )|https?://", lock, re.MULTILINE)
    assert lock.count("--hash=sha256:") >= len(requirements)


def test_the_page_on_security_names_tests_that_there_are():
    table = (ROOT / "docs/security.md").read_text().partition("## OWASP")[2].partition("\n## ")[0]
    lines = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| API")]
    named = [re.findall(r"`(\w+)`", tests) for _, _, tests in lines]
    defined = {
        name
        for file in tracked()
        if file.name.startswith("test_") and file.suffix == ".py"
        for name in re.findall(r"^def test_(\w+)", file.read_text(), re.MULTILINE)
    }

    assert [risk.split()[0] for risk, _, _ in lines] == [f"API{number}" for number in range(1, 11)]
    assert all(named)
    assert {name for names in named for name in names} - defined == set()
