"""The package as a program of somebody else's installs it: built, beside a module named `api`, and removed again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CLIENT = ROOT / "clients/python"
DEPENDENCIES = ("httpx", "msgspec", "websockets", "httpcore", "h11", "anyio", "certifi", "idna", "typing-extensions")


def run(*command, **options):
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        **options,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built as pip builds it, without internet: hatchling is in the tests' environment."""
    source, built = tmp_path_factory.mktemp("source") / "python", tmp_path_factory.mktemp("wheel")
    shutil.copytree(CLIENT, source, ignore=shutil.ignore_patterns("__pycache__"))
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", built, cwd=source)
    (wheel,) = built.glob("presage_client-*.whl")
    return wheel


def test_the_wheel_holds_the_package_alone(wheel):
    with zipfile.ZipFile(wheel) as packed:
        names = {name for name in packed.namelist() if ".dist-info/" not in name}
        about = {
            name.rpartition("/")[2]: packed.read(name).decode() for name in packed.namelist() if "dist-info" in name
        }
    modules = (path for path in (CLIENT / "presage_client").rglob("*") if path.suffix in {".py", ".typed"})
    assert names == {str(path.relative_to(CLIENT)) for path in modules}
    needed = [
        line for line in about["METADATA"].splitlines() if line.startswith("Requires-Dist") and "extra" not in line
    ]
    assert sorted(line.split()[1].partition(">")[0] for line in needed) == ["httpx", "msgspec", "websockets"]
    assert about["LICENSE"] == (ROOT / "LICENSE").read_text()


def test_it_installs_beside_a_module_named_api_and_uninstalls(wheel, tmp_path):
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    python, uv = venv / "bin/python", Path(sys.executable).with_name("uv")
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"))
    for name in DEPENDENCIES:  # no registry is needed: they are the ones of the tests' environment
        for file in _files(name):
            (packages / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(sysconfig.get_path("purelib")) / file, packages / file)
    for module in ("api", "cli", "config", "sql"):
        (tmp_path / f"{module}.py").write_text("ours = True\n")
    before = set(packages.iterdir())

    run(uv, "pip", "install", "-q", "--offline", "--no-deps", "--python", python, wheel)

    code = (
        "import sys, api, cli, config, sql, presage_client as client;"
        "assert api.ours and cli.ours and config.ours and sql.ours;"
        "assert client.Client('http://127.0.0.1:9').base_url; client.AsyncClient(); client.Stream('http://x', 'key');"
        "print(client.__file__, *sorted({'pandas', 'numpy', 'falcon', 'pydantic'} & set(sys.modules)))"
    )
    assert run(python, "-c", code, cwd=tmp_path) == str(packages / "presage_client/__init__.py")
    run(uv, "pip", "check", "--python", python)

    run(uv, "pip", "uninstall", "-q", "--python", python, "presage-client")

    assert set(packages.iterdir()) == before
    assert run(python, "-c", "import importlib.util as u; print(u.find_spec('presage_client'))") == "None"


def _files(name):
    """The files of an installed distribution below site-packages; none if it is not installed."""
    try:
        files = distribution(name).files or ()
    except ModuleNotFoundError:
        return []
    return [file for file in files if ".." not in file.parts and file.suffix != ".pyc"]
