"""The repository of one cluster's base backups and archived write-ahead log, by pgBackRest."""

from __future__ import annotations

import re
import secrets
import shlex
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sql.backup.base import catalogue, program
from sql.backup.errors import BackupError
from sql.embedded import EmbeddedError, archiving, installation, postmaster
from sql.embedded import place as places
from sql.embedded.account import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from sql.backup.base.catalogue import BaseBackup, Stanza
    from sql.backup.base.options import Options
    from sql.embedded.place import ClusterFolder

LAUNCHER, CONFIGURATION, STANZA = "pgbackrest", "pgbackrest.conf", "stanza"
RESTORE_CONFIGURATION = "restore.conf"  # beside that of a cluster's own archiving
IO_TIMEOUT_S = 10  # of a read from the repository; it is tried nine times
PUSH_TIMEOUT_S = 120  # of one segment, whatever holds it up
LINE = re.compile(r"^(?:\d{4}-\d\d-\d\d [\d:.]+ )?P\d\d +(?P<level>[A-Z]+): (?P<text>.*)")
SHARE = re.compile(r"^restore file .*?([\d.]+)%\)")


@dataclass(frozen=True)
class Repository:
    """pgBackRest for the cluster of one data folder; `stanza` is the cluster's name in the repository."""

    place: ClusterFolder
    stanza: str
    configuration: str = CONFIGURATION

    @property
    def folder(self) -> Path:
        """Return the folder of the configuration, below the cluster's home."""
        return self.place.home / archiving.FOLDER

    def ensure_stanza(self) -> None:
        """Create the stanza, if it is not there; the server has to run."""
        self.run("stanza-create", *self._server())

    def take(self, kind: str, notes: Mapping[str, str], progress: Callable[[str], None] = lambda _: None) -> BaseBackup:
        """Take a base backup of the running server; one without a predecessor is full, whatever `kind` says.

        Backups beyond those that are kept are deleted afterwards, with the write-ahead log that only they need.
        """
        self.ensure_stanza()
        annotations = [f"--annotation={name}={value}" for name, value in notes.items()]
        self.run("backup", f"--type={kind}", *annotations, *self._server(), progress=progress)
        return self.stanza_info().backups[-1]

    def stanzas(self) -> list[Stanza]:
        """Return what the repository holds, of this cluster and of others."""
        return catalogue.parse(self.run("info", "--output=json", stanza=False))

    def stanza_info(self) -> Stanza:
        """Return what the repository holds of this cluster."""
        return next(
            (each for each in self.stanzas() if each.name == self.stanza), catalogue.Stanza(self.stanza, [], [])
        )

    def archived_until(self, stanza: Stanza) -> datetime | None:
        """Return when the newest segment was archived: nothing that was committed later is in the repository."""
        newest: list[int] = []
        for each in stanza.archives:
            path = f"archive/{stanza.name}/{each}"
            folders = sorted(catalogue.listing(self.run("repo-ls", path, "--output=json", stanza=False)))
            # The last folder of each timeline.
            for name in {folder[:8]: folder for folder in folders if re.fullmatch(r"[0-9A-F]{16}", folder)}.values():
                files = catalogue.listing(self.run("repo-ls", f"{path}/{name}", "--output=json", stanza=False))
                newest += [file.time for file in files.values() if file.time is not None]
        return datetime.fromtimestamp(max(newest), UTC) if newest else None

    def run(
        self, command: str, *options: str, stanza: bool = True, progress: Callable[[str], None] | None = None
    ) -> str:
        """Run pgBackRest as the server's user and return its output; secrets are in its configuration alone."""
        words = ["/bin/sh", str(self.folder / LAUNCHER), command, f"--config={self.folder / self.configuration}"]
        words += [f"--stanza={self.stanza}"] if stanza else []
        words += ["--log-level-stderr=error", f"--log-level-console={'detail' if progress else 'off'}", *options]
        user = self.place.user
        process = subprocess.Popen(  # noqa: S603 - a program of ours
            words,
            cwd=self.place.home,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            umask=0o077,
            **user.identity(),
        )
        lines: list[str] = []
        with process:
            try:
                assert process.stdout is not None
                for line in process.stdout:
                    lines.append(line.rstrip("\n"))
                    if progress is not None and (found := SHARE.match(_text(line))):
                        progress(found[1])
            except BaseException:
                process.terminate()
                raise
        if process.returncode != 0:
            raise _failed(command, lines)
        return "\n".join(lines)

    def _server(self) -> list[str]:
        live = postmaster.running(self.place.data)
        if live is None or live.sockets is None or live.port is None:
            raise BackupError("the embedded database is not running", "start it: presage up")
        return [f"--pg1-socket-path={live.sockets}", f"--pg1-port={live.port}"]


def opened(data_dir: Path) -> Repository | None:
    """Return the repository that a data folder's cluster archives to; None if its archiving is off."""
    place = places.find(data_dir / "database")
    try:
        if not archiving.script(place.home).exists():
            return None
        return Repository(place, (place.home / archiving.FOLDER / STANZA).read_text().strip())
    except OSError:
        return None


def active(data_dir: Path) -> Repository | None:
    """Return the repository of a data folder's cluster if that archives, and runs."""
    found = opened(data_dir)
    return None if found is None or postmaster.running(found.place.data) is None else found


def configure(
    place: ClusterFolder,
    options: Options,
    *,
    stanza: str | None = None,
    data: Path | None = None,
    cache_dir: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Repository:
    """Write pgBackRest's configuration into a cluster's home, without turning archiving on.

    `stanza` is that of another cluster, to restore from: it gets a configuration of its own.
    """
    try:
        server = installation.install(cache_dir, tell)
    except EmbeddedError as error:
        raise BackupError(error.problem, error.remedy) from error
    prefix = program.install(cache_dir, tell)
    place.make()
    folder = place.home / archiving.FOLDER
    for each in (folder, folder / "lock"):
        each.mkdir(exist_ok=True)
        each.chmod(0o700)
        place.user.own(each)
    name = CONFIGURATION if stanza is None else RESTORE_CONFIGURATION
    if stanza is None:
        stanza = _own_stanza(place, folder / STANZA)
    if options.folder is not None:
        _make_repository(place, options.folder)
    _write(place, folder / LAUNCHER, program.launcher(prefix, server, folder / LAUNCHER), 0o700)
    _write(place, folder / name, _configuration(place, options, stanza, data or place.data))
    return Repository(place, stanza, name)


def enable(
    data_dir: Path, options: Options, *, cache_dir: Path | None = None, tell: Callable[[str], None] = lambda _: None
) -> Repository:
    """Turn archiving on for the cluster of a data folder, from its next start."""
    place = places.find(data_dir / "database")
    repository = configure(place, options, cache_dir=cache_dir, tell=tell)
    folder = repository.folder
    push = ["timeout", "-k", "5", str(PUSH_TIMEOUT_S), "/bin/sh", folder / LAUNCHER, "archive-push"]
    push += [f"--config={folder / CONFIGURATION}", f"--stanza={repository.stanza}", "--log-level-console=off"]
    push += ["--log-level-stderr=error"]
    gives_up = f"[ -e {shlex.quote(str(archiving.stopping(place.home)))} ] && exit {archiving.GIVE_UP_STATUS}"
    _write(
        place,
        archiving.script(place.home),
        f'#!/bin/sh\n{gives_up}\nexec {shlex.join(map(str, push))} "$1"\n',
    )
    return repository


def forget_origin(place: ClusterFolder) -> None:
    """Remove the configuration that a cluster was restored by: it has the passphrase."""
    (place.home / archiving.FOLDER / RESTORE_CONFIGURATION).unlink(missing_ok=True)


def disable(place: ClusterFolder) -> bool:
    """Turn archiving off, from the cluster's next start; return whether it was on."""
    script = archiving.script(place.home)
    was_on = script.exists()
    script.unlink(missing_ok=True)
    # Secrets stay nowhere without need; the next time gets a stanza of its own, as log is missing in between.
    for name in (CONFIGURATION, STANZA):
        (script.parent / name).unlink(missing_ok=True)
    return was_on


def _own_stanza(place: ClusterFolder, file: Path) -> str:
    with suppress(FileNotFoundError):
        return file.read_text().strip()
    name = f"presage-{datetime.now(UTC):%Y%m%d-%H%M}-{secrets.token_hex(2)}"
    _write(place, file, f"{name}\n")
    return name


def _make_repository(place: ClusterFolder, folder: Path) -> None:
    """Create the repository's folder, or check that the server's user can use the one that is there."""
    user = place.user
    try:
        if not folder.exists():
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
            user.own(folder)
    except OSError as error:
        raise BackupError(
            f"the repository {folder} cannot be created: {error}", "set PRESAGE_BACKUP_REPOSITORY"
        ) from error
    test = user.run(["/bin/sh", "-c", 'test -d "$1" && test -w "$1" && test -x "$1"', "sh", folder], cwd=Path("/"))
    if test.returncode != 0:
        raise BackupError(
            f"user {user.name}, who runs the database, cannot write to the repository {folder}",
            f"chown {user.name} {folder}, and let that user pass the folders above it",
        )


def _configuration(place: ClusterFolder, options: Options, stanza: str, data: Path) -> str:
    folder = place.home / archiving.FOLDER
    return "\n".join(
        [
            "# Written anew at each start of `presage up`.",
            "[global]",
            f"cmd={folder / LAUNCHER}",
            f"lock-path={folder / 'lock'}",
            "log-level-file=off",
            "compress-type=zst",
            "start-fast=y",
            f"io-timeout={IO_TIMEOUT_S}",
            *options.lines(),
            "",
            f"[{stanza}]",
            f"pg1-path={data}",
            "pg1-user=presage",
            "pg1-database=postgres",
            "",
        ]
    )


def _write(place: ClusterFolder, file: Path, text: str, mode: int = 0o600) -> None:
    part = file.with_name(f".{file.name}.part")
    part.unlink(missing_ok=True)
    part.touch(mode)
    part.write_text(text)
    place.user.own(part)
    part.replace(file)


def _text(line: str) -> str:
    found = LINE.match(line)
    return found["text"] if found else line


def _failed(command: str, lines: list[str]) -> BackupError:
    errors = [number for number, line in enumerate(lines) if (match := LINE.match(line)) and match["level"] == "ERROR"]
    said = [_text(line).strip() for line in (lines[errors[0] :] if errors else lines[-3:])]
    return BackupError(f"pgbackrest {command} failed", " ".join(said[:3]) or "it said nothing")
