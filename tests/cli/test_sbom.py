"""The components that Presage is shipped with, their licences, and the texts that visitors can read."""

import hashlib
import json
import re
from pathlib import Path

import pytest

from api.site.assets import FROM_NPM, Assets
from cli import sbom
from cli.sbom import Component

ROOT = Path(__file__).parents[2]
NODE = ROOT / "node_modules"
FROM_PACKAGE_JSON = json.loads((ROOT / "package.json").read_text())["dependencies"]


@pytest.fixture(scope="module")
def shipped():
    return sbom.components()


def test_every_shipped_component_has_a_licence_that_is_accepted(shipped):
    assert [each for each in shipped if not each.accepted] == []
    assert sbom.READ.keys() <= {each.name for each in shipped}


def test_what_is_locked_and_what_visitors_load_is_listed_and_nothing_else(shipped):
    locked = (ROOT / "requirements.lock").read_text()
    pins = set(re.findall(r"^([a-z0-9][^=\[]*)(?:\[.*\])?==(\S+)", locked, re.MULTILINE))
    elsewhere = set(re.findall(r"^([a-z0-9]\S*)==(\S+) ; ", locked, re.MULTILINE))  # other systems, other Pythons
    listed = {kind: {(each.name, each.version) for each in shipped if each.kind == kind} for kind in ("pypi", "npm")}

    assert listed["npm"] == set(FROM_PACKAGE_JSON.items())
    assert pins - elsewhere <= listed["pypi"] <= pins


def test_the_scripts_of_the_list_are_those_that_are_served(shipped):
    sums = {each.sha256 for each in shipped if each.kind == "npm"}

    assert sums == {hashlib.sha256((NODE / file).read_bytes()).hexdigest() for file, _ in FROM_NPM.values()}


@pytest.mark.parametrize(
    ("licence", "accepted"),
    [
        ("MIT", True),
        ("(MPL-2.0 OR Apache-2.0)", True),
        ("EPL-2.0 OR GPL-3.0-or-later", True),
        ("MIT AND PSF-2.0", True),
        ("MIT AND GPL-3.0-only", False),
        ("AGPL-3.0-only", False),
        ("SSPL-1.0", False),
        ("Other/Proprietary License", False),
        ("", False),
    ],
)
def test_a_licence_is_accepted_if_one_of_its_alternatives_is(licence, accepted):
    assert Component("pypi", "any", "1.0", licence).accepted is accepted


def test_the_files_are_written_and_a_licence_that_is_not_accepted_is_an_error(shipped, tmp_path, monkeypatch):
    sbom.main([str(tmp_path)])
    document = json.loads((tmp_path / "presage.cdx.json").read_text())
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.6")
    assert {each["purl"] for each in document["components"]} == {each.purl for each in shipped}
    assert all(
        each["licenses"] == [{"expression": each["licenses"][0]["expression"]}] for each in document["components"]
    )
    assert len((tmp_path / "licenses.md").read_text().splitlines()) == len(shipped) + 2
    assert sbom.cyclonedx(shipped) == document

    monkeypatch.setattr(sbom, "components", lambda: [Component("pypi", "theirs", "1.0", "AGPL-3.0-only")])
    with pytest.raises(SystemExit, match="not accepted: theirs: AGPL"):
        sbom.main([str(tmp_path)])


def test_visitors_can_read_the_licences_of_what_they_load():
    text = sbom.TEXTS.read_text()
    first = " ".join(text.split("---", 1)[0].split())

    # After a new version of these packages: python -m cli.sbom --texts
    assert " and ".join(f"{name} {version}" for name, version in FROM_PACKAGE_JSON.items()) in first
    for package in FROM_PACKAGE_JSON:
        described = json.loads((NODE / package / "package.json").read_text())
        names = [package, *(name for name in described.get("dependencies", {}) if not name.startswith("@types/"))]
        assert [name for name in names if f"\n{name}: " not in text] == []
        assert (NODE / package / "LICENSE").read_text().strip() in text
    assert "https://github.com/kieler/elkjs" in text  # EPL-2.0: where its source is
    assert Assets(NODE).url("licenses.txt").endswith("/licenses.txt")
