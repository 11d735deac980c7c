"""docker-compose.yml as the real Docker Compose renders it, and its proxy as the real Caddy runs it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.debian_programs import debian_program
from tests.deployment.proxies import Backend, Proxy
from tests.patience import until

ROOT = Path(__file__).parents[2]
SECRETS = {
    "POSTGRES_PASSWORD": "not-a-secret",
    "PRESAGE_PIPELINE_PASSWORD": "of-the-pipeline",
    "PRESAGE_API_PASSWORD": "of-the-api",
    "PRESAGE_SITE_PASSWORD": "of-the-site",
    "PRESAGE_DAGSTER_PASSWORD": "no secret of anybody",
    "PRESAGE_WEBHOOK_ENCRYPTION_KEYS": "cHJlc2FnZSBwcmVzYWdlIHByZXNhZ2UgcHJlc2FnZSE=",
}


def rendered(*options, **variables):
    done = subprocess.run(
        [debian_program("docker-compose"), "--env-file", "/dev/null", *options, "config", "--format", "json"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    return done, json.loads(done.stdout) if done.returncode == 0 else {}


@pytest.fixture(scope="session")
def config():
    done, config = rendered("--profile", "*", **SECRETS)
    assert done.returncode == 0, done.stderr
    return config


@pytest.fixture
def backend():
    with Backend() as server:
        yield server
        server.shutdown()


@pytest.fixture
def proxy(config, tmp_path, backend):
    """Start proxies; stop them at the end."""
    started = []

    def start(*alterations, scheme="http", to=None):
        folder = tmp_path / f"caddy-{len(started)}"
        backends = to or [f"127.0.0.1:{backend.server_port}"] * 3
        started.append(Proxy(config, folder, backends, scheme, *alterations))
        until(started[-1].listens)
        return started[-1]

    yield start
    for each in started:
        each.stop()
