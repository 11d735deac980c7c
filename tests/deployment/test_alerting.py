"""The alerting of docker-compose.yml, by Alertmanager's own check."""

import subprocess

import yaml

from tests.debian_programs import debian_program
from tests.deployment.conftest import SECRETS, rendered


def configuration(folder, **given):
    """Write Alertmanager's configuration as Compose renders it; return the file and the rendered file as a whole."""
    done, config = rendered("--profile", "*", **SECRETS, **given)
    assert done.returncode == 0, done.stderr
    file = folder / "alertmanager.yml"
    file.write_text(config["configs"]["alertmanager"]["content"].replace("$$", "$"))
    return file, config


def test_the_configuration_is_valid_with_the_one_setting_and_refused_without_it(tmp_path):
    def checked(**given):
        file, _ = configuration(tmp_path, **given)
        return subprocess.run([debian_program("amtool"), "check-config", file], capture_output=True, check=False)

    assert checked(ALERTMANAGER_WEBHOOK_URL="https://alerts.example/hook?token=x&y=$z").returncode == 0
    assert checked().returncode != 0


def test_prometheus_knows_where_alertmanager_is(tmp_path):
    _, config = configuration(tmp_path)
    prometheus = yaml.safe_load(config["configs"]["prometheus"]["content"])

    (target,) = prometheus["alerting"]["alertmanagers"][0]["static_configs"][0]["targets"]
    assert target == "alertmanager:9093"
    shared = set(config["services"]["prometheus"]["networks"]) & set(config["services"]["alertmanager"]["networks"])
    assert shared == {"monitoring"}
