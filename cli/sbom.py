"""The components that Presage is shipped with: a CycloneDX list (SBOM), their licences, and the texts for visitors.

`python -m cli.sbom FOLDER` writes `presage.cdx.json` and `licenses.md` there: what requirements.lock installs on this
platform, and the packages whose scripts the site serves. It ends with status 1 if a licence is unknown or not accepted.
`python -m cli.sbom --texts` writes api/site/static/licenses.txt from node_modules, after a change of those packages.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from collections import defaultdict
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from packaging.requirements import Requirement

from api.site.assets import FOLDER, FROM_NPM

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
TEXTS = FOLDER / "licenses.txt"
# What a self-hosted service under Apache-2.0 may be delivered with; weak copyleft as separate, unchanged packages only.
ACCEPTED = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0", "PSF-2.0", "Unlicense"),
    *("ZPL-2.1", "Zlib"),
    *("EPL-2.0", "LGPL-3.0-only", "LGPL-3.0-or-later", "MPL-2.0"),
}
# Names in metadata that are older than licence expressions.
IDENTIFIERS = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License Version 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "MIT license": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
# Whose metadata names none, or not which: read in their licence files.
READ = {
    "aiofastnet": "MIT",
    "altair": "BSD-3-Clause",
    "antlr4-python3-runtime": "BSD-3-Clause",
    "gevent-websocket": "Apache-2.0",
    "jinja2": "BSD-3-Clause",
    "picows": "MIT",
    "psycopg2-binary": "LGPL-3.0-or-later",  # with an exception for linking with OpenSSL
    "pyperclip": "BSD-3-Clause",
    "python-dateutil": "Apache-2.0 OR BSD-3-Clause",
    "scipy": "BSD-3-Clause",
}


class Component(NamedTuple):
    """A package as it is shipped; `licence` is an SPDX expression, if it is known."""

    kind: str
    name: str
    version: str
    licence: str
    sha256: str | None = None

    @property
    def purl(self) -> str:
        return f"pkg:{self.kind}/{self.name}@{self.version}"

    @property
    def accepted(self) -> bool:
        """Whether one of the alternatives consists of accepted licences alone."""
        alternatives = self.licence.strip("()").split(" OR ")
        return any(ACCEPTED.issuperset(each.split(" AND ")) for each in alternatives)


def components() -> list[Component]:
    """Return every component that is shipped, by name."""
    return [*_from_pypi(), *_from_npm()]


def _from_pypi() -> Iterator[Component]:
    for line in re.findall(r"^[a-z0-9][^\\\n]*", (ROOT / "requirements.lock").read_text(), re.MULTILINE):
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate():
            found = metadata.distribution(requirement.name)
            yield Component("pypi", requirement.name, found.version, _licence(requirement.name, found.metadata))


def _licence(name: str, found: Any) -> str:
    if expression := READ.get(name) or found.get("License-Expression"):
        return str(expression)
    classified = [each.rpartition(" :: ")[2] for each in found.get_all("Classifier", []) if each.startswith("License")]
    field = found.get("License") or ""
    for given in (field, " OR ".join(IDENTIFIERS.get(each, each) for each in classified)):
        expression = IDENTIFIERS.get(given, given)
        if Component("", "", "", expression).accepted:
            return expression
    return str(field[:60] or " OR ".join(classified))


def _from_npm() -> Iterator[Component]:
    for file, sha256 in FROM_NPM.values():  # the site checks them when it reads them
        package = _package(ROOT / "node_modules" / file.partition("/")[0])
        yield Component("npm", package["name"], package["version"], package["license"], sha256)


def _package(folder: Path) -> dict[str, Any]:
    return dict(json.loads((folder / "package.json").read_text()))


def cyclonedx(listed: list[Component]) -> dict[str, Any]:
    """Return the list as CycloneDX 1.6; the same components give the same document."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    body: list[dict[str, Any]] = [
        {
            "type": "library",
            "bom-ref": each.purl,
            "name": each.name,
            "version": each.version,
            "purl": each.purl,
            "licenses": [{"expression": each.licence} if each.accepted else {"license": {"name": each.licence}}],
        }
        | ({"hashes": [{"alg": "SHA-256", "content": each.sha256}]} if each.sha256 else {})
        for each in listed
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body))}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": "presage",
                "name": "presage",
                "version": project["version"],
                "licenses": [{"expression": project["license"]}],
            }
        },
        "components": body,
    }


def texts(node_modules: Path) -> str:
    """Return the licence texts of the scripts that visitors load: of the packages, and of what is bundled in them."""
    named: dict[str, list[str]] = defaultdict(list)
    for folder in sorted(_bundled(node_modules)):
        package = _package(folder)
        files = [each for each in folder.iterdir() if re.match("licen[cs]e|notice", each.name, re.IGNORECASE)]
        text = "\n\n".join(each.read_text().strip() for each in sorted(files) if each.suffix != ".mjs")
        source = package.get("repository", {})
        named[text or "(its package has no text)"].append(
            f"{package['name']}: {package.get('license', 'see below')}, "
            f"{source if isinstance(source, str) else source.get('url', '')}"
        )
    versions = [_package(node_modules / file.partition("/")[0]) for file, _ in FROM_NPM.values()]
    head = " and ".join(f"{each['name']} {each['version']}" for each in versions)
    parts = [f"{chr(10).join(sorted(set(names)))}\n\n{text}" for text, names in sorted(named.items())]
    line = f"\n\n{72 * '-'}\n\n"
    return (
        f"Licences of the scripts of others that these pages load, unchanged: {head}, with the packages\n"
        "that they are built from. The addresses lead to the sources." + line + line.join(parts) + "\n"
    )


def _bundled(node_modules: Path) -> set[Path]:
    """Return the folders of the served packages and of all that they depend on; types are no code."""
    found: set[Path] = set()
    waiting = [node_modules / file.partition("/")[0] for file, _ in FROM_NPM.values()]
    while waiting:
        folder = waiting.pop()
        if folder in found:
            continue
        found.add(folder)
        for name in _package(folder).get("dependencies", {}):
            if not name.startswith("@types/"):
                nearest = folder / "node_modules" / name
                waiting.append(nearest if nearest.is_dir() else node_modules / name)
    return found


def main(arguments: list[str]) -> None:
    """Write what the command line asks for."""
    match arguments:
        case ["--texts"]:
            TEXTS.write_text(texts(ROOT / "node_modules"))
        case [folder]:
            listed = components()
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / "presage.cdx.json").write_text(json.dumps(cyclonedx(listed), indent=2) + "\n")
            rows = [f"| {each.name} | {each.version} | {each.licence} |" for each in listed]
            table = ["| component | version | licence |", "| --- | --- | --- |", *rows]
            (Path(folder) / "licenses.md").write_text("\n".join(table) + "\n")
            print(f"{len(listed)} components in {folder}")
            if refused := [f"{each.name}: {each.licence or 'no licence'}" for each in listed if not each.accepted]:
                sys.exit("not accepted: " + ", ".join(refused))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
