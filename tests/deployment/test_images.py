"""The images: what they are made of, and the script that builds them, with a stand-in for Docker."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIGEST = "sha256:" + 32 * "0a"


@pytest.fixture
def checkout(tmp_path):
    """What the script reads and writes."""
    for name in ("cli/__init__.py", "cli/images.py", "Dockerfile", "docker-compose.yml", "pyproject.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def run(checkout, *words, docker=None):
    programs = checkout / "programs"
    programs.mkdir()
    if docker:
        (programs / "docker").write_text(f"#!/bin/sh\n{docker}\n")
        (programs / "docker").chmod(0o755)
    return subprocess.run(
        [sys.executable, "-m", "cli.images", *words],
        cwd=checkout,
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_each_image_is_built_with_its_contents_and_its_provenance(checkout):
    done = run(checkout, "build", "--push", docker=f'echo "$@" >> {checkout}/asked')

    assert done.returncode == 0, done.stderr
    asked = (checkout / "asked").read_text().splitlines()
    attested = "buildx build --sbom=true --provenance=mode=max"
    assert asked == [
        f"{attested} --tag presage:0.1.0 --push .",
        f"{attested} --target database --tag presage-database:0.1.0 --push .",
        f"{attested} --target proxy --tag presage-proxy:0.1.0 --push .",
    ]


def test_what_is_built_is_what_compose_runs(config):
    from cli.images import IMAGES

    built = {service["image"]: service["build"] for service in config["services"].values() if "build" in service}
    assert {name.partition(":")[0]: of.get("target", "") for name, of in built.items()} == {
        name: target for target, name in IMAGES.items()
    }


def test_images_without_a_digest_get_the_one_that_their_registry_gives(checkout):
    dockerfile, compose = checkout / "Dockerfile", checkout / "docker-compose.yml"
    before = dockerfile.read_text()
    compose.write_text(compose.read_text().replace("grafana/grafana:12.1.0@sha256:", "grafana/grafana:12.1.0 # "))

    done = run(checkout, "digests", docker=f"echo {DIGEST}")

    assert done.returncode == 0, done.stderr
    assert f"image: grafana/grafana:12.1.0@{DIGEST} # " in compose.read_text()
    name = "timescale/timescaledb:2.19.3-pg17"
    assert dockerfile.read_text() == before.replace(f"FROM {name} AS", f"FROM {name}@{DIGEST} AS")


@pytest.mark.parametrize(
    ("docker", "message"),
    [(None, "docker is not installed"), ("exit 1", "docker buildx build failed"), ("echo", "")],
)
def test_without_a_docker_engine_the_script_says_what_it_takes(checkout, docker, message):
    done = run(checkout, "build", docker=docker)

    assert (done.returncode == 0) == (not message)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_no_digest_is_not_written(checkout):
    before = (checkout / "Dockerfile").read_text()

    done = run(checkout, "digests", docker="echo not a digest")

    assert done.returncode != 0
    assert (checkout / "Dockerfile").read_text() == before
