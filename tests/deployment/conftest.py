"""docker-compose.yml as the real Docker Compose renders it."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.debian_programs import debian_program

ROOT = Path(__file__).parents[2]
SECRETS = {
    "POSTGRES_PASSWORD": "not-a-secret",
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
