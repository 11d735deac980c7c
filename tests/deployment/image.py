"""What the Dockerfile's last stage copies into the image, made of this checkout and of the environment of the tests."""

import compileall
import fnmatch
import re
import shutil
import subprocess
import sys
from pathlib import Path
from py_compile import PycInvalidationMode

ROOT = Path(__file__).parents[2]


def copies(folder):
    """Return what is copied, and to where; files are made below `folder`."""
    dockerfile = (ROOT / "Dockerfile").read_text()
    venv = Path(sys.prefix).resolve()
    made = {
        "/opt/presage": [(venv, "/opt/presage"), (_programs(venv, folder / "bin"), "/opt/presage/bin")],
        "/opt/dagster": [(_dagster(folder / "dagster"), "/opt/dagster")],
        "/app": [(_checkout(dockerfile, folder / "app"), "/app")],
        "/build/kept": [(_pages(dockerfile, folder / "pages"), "/app/node_modules")],
    }
    (folder / "app/node_modules").mkdir()
    last = dockerfile.rpartition("\nFROM ")[2]
    copied = re.findall(r"^COPY --from=\w+ (\S+) (\S+)$", last, re.MULTILINE)
    assert len(copied) == len(re.findall("^(?:COPY|ADD) ", last, re.MULTILINE)) == len(made)
    pairs = [pair for source, _ in copied for pair in made[source]]
    assert {target for _, target in copied} <= {target for _, target in pairs}
    return pairs


def environment():
    """Return the ENV of the last stage."""
    last = (ROOT / "Dockerfile").read_text().rpartition("\nFROM ")[2].replace("\\\n", " ")
    (line,) = re.findall(r"^ENV (.*)$", last, re.MULTILINE)
    given = dict(pair.split("=", 1) for pair in line.split())
    given["PATH"] = given["PATH"].replace("$PATH", "/usr/local/bin:/usr/bin:/bin")
    # The packages that are installed editable lead to this checkout, not to /app.
    return {**given, "HOME": "/app", "PYTHONPATH": "/app:/app/clients/python"}


def _programs(venv, into):
    """The programs of the environment, started by the Python beside them."""
    into.mkdir()
    for file in (venv / "bin").iterdir():
        if file.is_symlink():
            (into / file.name).symlink_to(file.readlink())
        elif file.is_file() and file.read_bytes()[:2] == b"#!" and file.suffix != ".sh":
            lines = file.read_text().splitlines(keepends=True)
            (into / file.name).write_text("".join(["#!/opt/presage/bin/python\n", *lines[1:]]))
            (into / file.name).chmod(0o755)
    return into


def _dagster(into):
    into.mkdir()
    shutil.copy(ROOT / "dagster.yaml", into)
    return into


def _checkout(dockerfile, into):
    """The files of the checkout that .dockerignore leaves in, compiled as the Dockerfile does it."""
    patterns = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and line[0] != "#"]
    assert "\nCOPY . .\n" in dockerfile
    listed = ["git", "ls-files", "-co", "--exclude-standard"]
    for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
        parts = Path(name).parts
        left_out = any(
            any(fnmatch.fnmatch(part, pattern[3:]) for part in parts)
            if pattern.startswith("**/")
            else fnmatch.fnmatch(parts[0], pattern)
            for pattern in patterns
        )
        if (ROOT / name).is_file() and not left_out:
            (into / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, into / name)
    found = re.search(r"compileall -q --invalidation-mode unchecked-hash \\\n +([a-z/ ]+) \\\n", dockerfile)
    mode = PycInvalidationMode.UNCHECKED_HASH
    for folder in found[1].split():
        assert compileall.compile_dir(into / folder, quiet=1, stripdir=into, prependdir="/app", invalidation_mode=mode)
    subprocess.run(["chmod", "-R", "a+rX", into], check=True)
    return into


def _pages(dockerfile, into):
    """The files of npm's packages that the first stage keeps."""
    (names,) = re.findall(r"for file in ([^;]+);", dockerfile)
    for name in names.replace("\\", " ").split():
        (into / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "node_modules" / name, into / name)
    return into
