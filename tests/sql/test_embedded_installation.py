"""The embedded server's programs: complete or absent, whatever interrupts their installation."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from sql.embedded import debian, installation
from sql.embedded.errors import EmbeddedError

ROOT = Path(__file__).parents[2]
# An installation from packages that are there already, in a process of its own that can be killed.
INSTALL = """
import sys
from pathlib import Path
from sql.embedded import debian, installation
debian.download = lambda *_: sorted(Path(sys.argv[2]).glob("*.deb"))
print(installation.install(Path(sys.argv[1]), lambda step: print(step, flush=True)).prefix, flush=True)
"""


@pytest.fixture(scope="module")
def packages(request) -> Path:
    """The Debian packages, fetched by apt once and kept between test runs."""
    work = request.config.cache.mkdir("debian")
    debian.download(installation.machine().architecture, work, print)
    return work / "packages"


@pytest.fixture
def offline(packages, monkeypatch):
    monkeypatch.setattr(debian, "download", lambda *_: sorted(packages.glob("*.deb")))


@pytest.fixture
def cache(tmp_path) -> Path:
    return tmp_path / "a cache"  # a space in the path must not hurt


@pytest.fixture(scope="module")
def tree(tmp_path_factory, packages):
    """One installation that tests only read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(debian, "download", lambda *_: sorted(packages.glob("*.deb")))
        yield installation.install(tmp_path_factory.mktemp("tree"))


def installing(cache: Path, packages: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", INSTALL, cache, packages], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def version(tree: installation.Installation, program: str = "postgres") -> str:
    return subprocess.run([tree.program(program), "--version"], capture_output=True, text=True, check=True).stdout


def test_every_package_is_fetched(packages):
    assert sorted(debian.name_of(file) for file in packages.glob("*.deb")) == sorted(debian.PACKAGES)


def test_programs_run_under_the_libraries_they_came_with(tree):
    assert version(tree).startswith(f"postgres (PostgreSQL) {tree.postgresql}")
    assert version(tree, "psql").startswith("psql (PostgreSQL) 17")
    assert not (tree.prefix / ".download").exists()


def test_no_library_is_taken_from_the_machine(tree):
    """Listed by the loader itself; one found outside would be missing on another machine."""
    here = installation.machine()
    libraries = tree.prefix / "usr/lib" / here.triplet
    loader = [libraries / here.loader, "--inhibit-cache", "--library-path", libraries, "--list"]
    extensions = (tree.prefix / "usr/lib/postgresql/17/lib").glob("timescaledb*.so")
    for program in [*(tree.prefix / installation.BIN / ".real").iterdir(), *extensions]:
        listed = subprocess.run([*loader, program], capture_output=True, text=True, check=True).stdout

        foreign = [line for line in listed.splitlines() if "=>" in line and str(tree.prefix) not in line]

        assert foreign == [], program.name


def test_an_installation_is_not_made_twice(tree, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")  # nothing could be fetched

    assert installation.install(tree.prefix.parents[1]) == tree


def copied(tree: installation.Installation, cache: Path) -> Path:
    """Copy an installation, complete."""
    prefix = installation.cache_root(cache) / tree.prefix.name
    shutil.copytree(tree.prefix, prefix, symlinks=True)
    marker = prefix / installation.MARKER
    marker.write_text(marker.read_text().replace(str(tree.prefix), str(prefix)))
    assert installation.installed(cache) is not None
    return prefix


@pytest.mark.parametrize(
    "damage", ["a missing file", "a file cut short", "another place", "another recipe", "no marker"]
)
def test_a_damaged_installation_is_none(damage, tree, cache):
    prefix = copied(tree, cache)
    marker = prefix / installation.MARKER
    match damage:
        case "a missing file":
            (prefix / "usr/lib/postgresql/17/lib/timescaledb.so").unlink()
        case "a file cut short":
            os.truncate(prefix / "usr/lib/postgresql/17/bin/.real/postgres", 1000)
        case "another place":  # where its wrappers would not find it
            prefix.rename(prefix.with_name("moved"))
        case "another recipe":
            marker.write_text(marker.read_text().replace('"recipe": ', '"recipe": 9'))
        case "no marker":
            marker.unlink()

    assert installation.installed(cache) is None


def test_a_damaged_installation_is_made_anew_in_its_place(tree, cache, offline):
    prefix = copied(tree, cache)
    (prefix / "usr/lib/postgresql/17/lib/timescaledb.so").unlink()
    told = []

    repaired = installation.install(cache, told.append)

    assert repaired.prefix == prefix
    assert version(repaired).startswith("postgres (PostgreSQL) 17")
    assert told[0] == f"removing a broken installation ({prefix.name})"


@pytest.mark.soak
def test_an_installation_killed_at_any_moment_is_repaired(cache, packages, offline):
    for seconds in (0.0, 0.7, 1.6):
        process = installing(cache, packages)
        assert process.stdout is not None
        while "unpacking" not in process.stdout.readline():
            assert process.poll() is None
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()

    repaired = installation.install(cache)

    assert version(repaired).startswith("postgres (PostgreSQL) 17")
    assert [path.name for path in installation.cache_root(cache).glob(".part-*")] == []


@pytest.mark.soak
def test_two_at_once_install_once(cache, packages):
    processes = [installing(cache, packages), installing(cache, packages)]
    said = [process.communicate(timeout=300)[0] for process in processes]

    assert [process.returncode for process in processes] == [0, 0]
    assert said[0].splitlines()[-1] == said[1].splitlines()[-1]
    assert sum("unpacking" in text for text in said) == 1
    assert sum("waiting for another process" in text for text in said) == 1


def test_an_interrupted_installation_leaves_no_half_tree(cache, offline, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(installation, "_trim", interrupted)

    with pytest.raises(KeyboardInterrupt):
        installation.install(cache)

    assert [path.name for path in installation.cache_root(cache).iterdir()] == [".lock"]


def test_a_lock_is_waited_for_and_then_had(tmp_path):
    told, had = [], threading.Event()

    def second():
        with installation.locked(tmp_path / "lock", told.append):
            had.set()

    with installation.locked(tmp_path / "lock", told.append):
        thread = threading.Thread(target=second)
        thread.start()
        while not told:
            time.sleep(0.01)
        assert not had.wait(0.1)
    assert had.wait(60)
    thread.join()

    assert told == ["waiting for another process that is installing it"]


def test_a_lock_outlives_its_killed_holder_as_long_as_a_child_is_at_work(tmp_path):
    at_work = tmp_path / "at work"
    at_work.touch()
    holder = f"""
import os, signal, subprocess
from pathlib import Path
from sql.embedded.installation import locked
with locked(Path({str(tmp_path)!r}) / "lock", print):
    child = subprocess.Popen(["sh", "-c", "while [ -e '{at_work}' ]; do sleep 0.05; done"], close_fds=False)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    told = []

    def tell(text):
        told.append(text)
        at_work.unlink()

    try:
        subprocess.run([sys.executable, "-c", holder], cwd=ROOT, check=False)
        with installation.locked(tmp_path / "lock", tell):
            pass
    finally:
        at_work.unlink(missing_ok=True)

    assert told == ["waiting for another process that is installing it"]


def test_a_machine_without_apt_is_told_so(cache, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(EmbeddedError, match="no apt-get, apt-config, dpkg-deb") as failure:
        installation.install(cache)

    assert "DATABASE_URL" in str(failure.value)


def test_a_machine_without_debians_keys_is_told_so(cache, monkeypatch):
    monkeypatch.setattr(debian, "KEYRINGS", (Path("/nonexistent/keyring.gpg"),))

    with pytest.raises(EmbeddedError, match="signing keys") as failure:
        installation.install(cache)

    assert "apt-get install debian-archive-keyring" in failure.value.remedy


def test_a_full_disk_is_told_so(cache, monkeypatch):
    monkeypatch.setattr(installation, "NEEDED_BYTES", 1 << 60)

    with pytest.raises(EmbeddedError, match="not enough disk space") as failure:
        installation.install(cache)

    assert "PRESAGE_CACHE_DIR" in failure.value.remedy


def test_a_disk_that_fills_up_while_unpacking_is_told_so(tmp_path, monkeypatch):
    said = "dpkg-deb: error: … No space left on device"
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 2, "", said))

    with pytest.raises(EmbeddedError, match="No space left") as failure:
        debian.unpack([Path("a_1_amd64.deb")], tmp_path)

    assert "free some disk space" in failure.value.remedy


@pytest.mark.parametrize(("system", "processor"), [("Linux", "riscv64"), ("Darwin", "arm64")])
def test_a_machine_of_another_kind_is_told_so(cache, monkeypatch, system, processor):
    monkeypatch.setattr("platform.system", lambda: system)
    monkeypatch.setattr("platform.machine", lambda: processor)

    with pytest.raises(EmbeddedError, match=f"no packages for {system} on {processor}"):
        installation.install(cache)


def test_a_cache_that_cannot_be_made_is_told_so(tmp_path):
    (tmp_path / "file").touch()

    with pytest.raises(EmbeddedError, match="cannot be created") as failure:
        installation.install(tmp_path / "file" / "cache")

    assert "PRESAGE_CACHE_DIR" in failure.value.remedy


def test_programs_are_kept_where_those_who_run_them_can_come():
    root = installation.cache_root()

    assert root == (Path("/var/cache/presage") if os.geteuid() == 0 else Path.home() / ".cache/presage") / "timescaledb"
