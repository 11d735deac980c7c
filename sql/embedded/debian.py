"""Debian packages through the machine's own apt: its mirror, proxy and settings, but none of its state."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sql.embedded.errors import OTHERWISE, EmbeddedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

SUITE = "trixie"
RELEASES = {
    *("buster", "bullseye", "bookworm", "trixie", "forky", "duke", "sid"),
    *("oldoldstable", "oldstable", "stable", "testing", "unstable"),
}
KEYRINGS = tuple(Path("/usr/share/keyrings") / f"debian-archive-keyring.{kind}" for kind in ("gpg", "pgp"))
# The server, its client programs, and every library either of them loads: nothing is taken from the machine itself.
PACKAGES = (
    *("postgresql-17", "postgresql-client-17", "postgresql-17-timescaledb"),
    *("libc6", "libgcc-s1", "libstdc++6", "libgssapi-krb5-2", "libkrb5-3", "libk5crypto3", "libkrb5support0"),
    *("libcom-err2", "libkeyutils1", "libicu76", "libldap2", "libsasl2-2", "liblz4-1", "libzstd1", "zlib1g"),
    *("libpam0g", "libaudit1", "libcap-ng0", "libpq5", "libselinux1", "libpcre2-8-0", "libssl3t64", "libsystemd0"),
    *("libcap2", "libuuid1", "libxml2", "liblzma5", "libxslt1.1", "libgcrypt20", "libgpg-error0"),
    *("libreadline8t64", "libtinfo6", "libxxhash0"),
)
# Read after the machine's own configuration (apt reads `-c` last), so proxies, certificates and logins apply, while
# pins, hooks and a default release for the machine's own suite do not.
CONFIGURATION = """\
Dir::Etc::sourcelist "{work}/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "{work}/state";
Dir::State::status "{work}/state/status";
Dir::State::lists "{work}/state/lists";
Dir::Cache "{work}/cache";
Dir::Cache::archives "{work}/cache/archives";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear APT::NeverAutoRemove;
#clear Acquire::Languages;
Acquire::Languages "none";
Acquire::Retries "2";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
APT::Architecture "{architecture}";
APT::Default-Release "";
APT::Sandbox::User "";
APT::Update::Error-Mode "any";
APT::Get::AllowUnauthenticated "false";
"""


@dataclass(frozen=True)
class AptSource:
    """One apt archive of the machine: a URI, a suite, its components, and the key file that signs it."""

    uri: str
    suite: str
    components: tuple[str, ...]
    signed_by: str | None = None

    @property
    def release(self) -> str:
        """Return the suite without `-updates`, `-security`, `-backports`."""
        return re.split(r"[-/]", self.suite, maxsplit=1)[0]


def one_line(text: str) -> Iterator[AptSource]:
    """Parse the sources of a `.list` file: `deb [options] uri suite component …`."""
    for line in text.splitlines():
        found = re.match(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<rest>.+)", line.split("#", 1)[0].strip())
        if found is None:
            continue
        options = dict(part.split("=", 1) for part in (found["options"] or "").split() if "=" in part)
        match found["rest"].split():
            case [uri, suite, *components]:
                yield AptSource(uri, suite, tuple(components), options.get("signed-by"))


def deb822(text: str) -> Iterator[AptSource]:
    """Parse the sources of a `.sources` file: stanzas of `Field: values`, folded lines and comments allowed."""
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    for stanza in re.split(r"\n[ \t]*\n", lines):
        fields = {
            found[1].lower(): found[2].split()
            for found in re.finditer(r"^([\w-]+):((?:.*(?:\n[ \t].*)*))", stanza, flags=re.MULTILINE)
        }
        if "deb" not in fields.get("types", []) or fields.get("enabled", ["yes"])[0].lower() in {"no", "false", "0"}:
            continue
        signed_by = next((word for word in fields.get("signed-by", []) if word.startswith("/")), None)
        for uri in fields.get("uris", []):
            for suite in fields.get("suites", []):
                yield AptSource(uri, suite, tuple(fields.get("components", [])), signed_by)


def machine_sources() -> list[AptSource]:
    """Return every archive that this machine's apt is configured to read."""
    asked = ("apt-config", "shell", "MAIN", "Dir::Etc::sourcelist/f", "PARTS", "Dir::Etc::sourceparts/d")
    output = subprocess.run(asked, capture_output=True, text=True, check=False).stdout  # noqa: S603 - apt's own
    paths = dict(word.split("=", 1) for word in shlex.split(output) if "=" in word)
    parts = Path(paths.get("PARTS", "/etc/apt/sources.list.d"))
    files = [Path(paths.get("MAIN", "/etc/apt/sources.list")), *sorted(parts.glob("*"))]
    found: list[AptSource] = []
    for file in files:
        reader = {".list": one_line, ".sources": deb822}.get(file.suffix)
        if reader is not None and file.is_file():
            found += reader(file.read_text(errors="replace"))
    return found


def mirrors(sources: Iterable[AptSource]) -> list[AptSource]:
    """Return the archives that look like Debian's main one, likeliest first; others also call a suite `stable`."""
    sources = list(sources)
    plain = [s for s in sources if s.suite in RELEASES and "main" in s.components and not s.uri.startswith("cdrom:")]
    with_updates = {s.uri for s in sources if s.suite != s.release and s.release in RELEASES}

    def unlikely(source: AptSource) -> tuple[bool, bool, bool, bool]:
        return (
            source.suite != SUITE,
            source.uri not in with_updates,
            source.signed_by is not None and "debian-archive" not in source.signed_by,
            "debian" not in source.uri.rstrip("/").rsplit("/", 1)[-1],
        )

    return sorted({s.uri: s for s in sorted(plain, key=unlikely, reverse=True)}.values(), key=unlikely)


def security(sources: Iterable[AptSource]) -> list[AptSource]:
    """Return the archive of security fixes, if the machine names one."""
    return [
        s
        for s in sources
        if s.release in RELEASES
        and re.search(r"[-/](security|updates)$", s.suite)
        and ("security" in s.uri + s.suite)
        and "main" in s.components
    ][:1]


def keyring() -> Path:
    """Return the keys that Debian's packages are verified with."""
    for path in KEYRINGS:
        if path.is_file():
            return path
    raise EmbeddedError(
        "Debian's signing keys are not on this machine (no debian-archive-keyring in /usr/share/keyrings)",
        f"apt-get install debian-archive-keyring, {OTHERWISE}",
    )


def require_programs() -> None:
    """Refuse a machine without apt and dpkg."""
    missing = [name for name in ("apt-get", "apt-config", "dpkg-deb") if shutil.which(name) is None]
    if missing:
        raise EmbeddedError(
            f"the embedded database is made of Debian packages, and this machine has no {', '.join(missing)}",
            f"use a Debian machine or image (Python's official images are), {OTHERWISE}",
        )


def require_mirror(sources: Iterable[AptSource] | None = None) -> list[AptSource]:
    """Return the candidate mirrors; refuse a machine that has none, such as one of another distribution."""
    found = mirrors(machine_sources() if sources is None else sources)
    if not found:
        raise EmbeddedError(
            "none of this machine's apt sources is a Debian mirror",
            f"use a Debian machine or image (Python's official images are), {OTHERWISE}",
        )
    return found[:3]


def download(
    architecture: str, work: Path, progress: Callable[[str], None], packages: tuple[str, ...] = PACKAGES
) -> list[Path]:
    """Fetch every package into `work`/packages and return the files; existing ones are not fetched again."""
    signed_by = keyring()
    sources = machine_sources()
    candidates = require_mirror(sources)
    into = work / "packages"
    for folder in (into, work / "state/lists/partial", work / "cache/archives/partial"):
        folder.mkdir(parents=True, exist_ok=True)
    (work / "state/status").touch()
    (work / "apt.conf").write_text(CONFIGURATION.format(work=work, architecture=architecture))

    options = f"[arch={architecture} target=Packages signed-by={signed_by}]"
    _read_lists(work, options, candidates, security(sources), progress)

    _, output = _apt(work, ["download", "--print-uris", *packages], into)
    missing = dict(re.findall(r"^'\S+' (\S+\.deb) (\d+)", "\n".join(output), flags=re.MULTILINE))
    for file in into.glob("*.deb"):  # an earlier interrupted download may have left older versions
        if name_of(file) in {name.split("_", 1)[0] for name in missing}:
            file.unlink()
    if missing:
        megabytes = sum(map(int, missing.values())) / 1e6
        progress(f"downloading {len(missing)} packages, {megabytes:.0f} MB")
    status, output = _apt(work, ["download", *packages], into)
    files = sorted(into.glob("*.deb"))
    if status != 0 or sorted(map(name_of, files)) != sorted(packages):
        raise _failed("downloading Debian's packages", output)
    return files


def _read_lists(
    work: Path, options: str, candidates: list[AptSource], fixes: list[AptSource], progress: Callable[[str], None]
) -> None:
    """Read the package lists of the first mirror that answers, with security fixes if available."""
    progress(f"reading the package list of Debian {SUITE}")
    output: list[str] = []
    for mirror in candidates:
        for extra in [fixes, []] if fixes else [[]]:
            suites = [(mirror.uri, SUITE), *((source.uri, f"{SUITE}-security") for source in extra)]
            (work / "sources.list").write_text("".join(f"deb {options} {uri} {suite} main\n" for uri, suite in suites))
            status, output = _apt(work, ["update"], work)
            if status == 0:
                return
    raise _failed("reading Debian's package list", output)


def name_of(file: Path) -> str:
    """Return the package of a `.deb`, from its file name."""
    return file.name.split("_", 1)[0]


def version_of(file: Path) -> str:
    """Return the version of a `.deb`, without epoch and Debian's own revision: `2.19.3`."""
    version = file.name.split("_")[1].split("%3a")[-1]
    return re.split(r"[-+~]", version, maxsplit=1)[0]


def unpack(files: Iterable[Path], into: Path) -> None:
    """Unpack packages into a folder; none of their scripts runs."""
    for file in files:
        command = ("dpkg-deb", "-x", file, into)
        done = subprocess.run(  # noqa: S603 - dpkg's own
            command, capture_output=True, text=True, check=False, close_fds=False
        )
        if done.returncode != 0:
            raise _failed(f"unpacking {file.name}", done.stderr.splitlines())


def _apt(work: Path, arguments: list[str], cwd: Path) -> tuple[int, list[str]]:
    command = ("apt-get", "-q", "-c", str(work / "apt.conf"), *arguments)
    done = subprocess.run(  # noqa: S603 - apt's own
        command,
        cwd=cwd,
        env={**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
        close_fds=False,  # it shares the installation's lock: if we are killed, the next one waits until it has ended
    )
    return done.returncode, [line for line in done.stdout.splitlines() if line]


def _failed(doing: str, output: list[str]) -> EmbeddedError:
    text = "\n".join(f"    {line}" for line in output[-8:])
    if "No space left" in text:
        remedy = f"free some disk space, {OTHERWISE}"
    elif "temporary file" in text:
        remedy = f"let this user write to {os.environ.get('TMPDIR', '/tmp')}, {OTHERWISE}"  # noqa: S108 - apt's own choice
    elif "NO_PUBKEY" in text or "not signed" in text:
        remedy = f"bring the keys up to date (apt-get install --only-upgrade debian-archive-keyring), {OTHERWISE}"
    else:
        remedy = f"check the network and this machine's apt sources, and try again, {OTHERWISE}"
    return EmbeddedError(f"{doing} failed; its last output:\n{text}", remedy)
