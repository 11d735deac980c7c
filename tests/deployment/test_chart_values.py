"""Settings that the chart is given reach the processes; those that cannot work are refused."""

import tomllib

import pytest
import yaml

from config.settings import Settings
from tests.deployment.chart import (
    BY_NAME,
    LASTING,
    META,
    NOT_GIVEN,
    SCHEMA,
    SECRET,
    by_component,
    containers,
    environment,
    everywhere,
    of_kind,
    pods,
    rendered,
)
from tests.deployment.helm import CHART, ROOT, helm, resources


@everywhere
def test_every_image_of_ours_is_named_in_one_place(values):
    given = yaml.safe_load((CHART / f"ci/{values}.yaml").read_text()).get("image", {})
    tag = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    registry = f"{given['registry']}/" if "registry" in given else ""
    digest = f"@{given['digest']}" if "digest" in given else ""
    images = {container["image"] for template in pods(values).values() for container in containers(template)}

    assert META["appVersion"] == META["version"] == tag
    assert images == {f"{registry}presage:{tag}{digest}"}
    assert "image:" not in "".join(
        line for file in (CHART / "templates").glob("*.yaml") for line in file.read_text().splitlines()
    )


@everywhere
def test_every_setting_that_is_passed_is_one_and_has_a_value_that_it_takes(values):
    for template in pods(values).values():
        for container in containers(template):
            given = environment(values, container)
            assert set(given) <= {*BY_NAME, "DAGSTER_PG_URL"}
            plain = {name: value for name, value in given.items() if isinstance(value, str) and value}
            Settings(_env_file=None, **plain)
            assert not set(plain) & SECRET


def test_settings_that_are_neither_secret_nor_the_charts_own_can_be_given():
    (container,) = by_component("minimal")["api"]["spec"]["containers"]
    (site,) = by_component("minimal")["site"]["spec"]["containers"]
    fixed = {*environment("monitoring", container), *environment("monitoring", site)}
    backups = {name for name in BY_NAME if "_BACKUP_" in name}

    assert set(SCHEMA["properties"]["settings"]["properties"]) == set(BY_NAME) - SECRET - fixed - NOT_GIVEN - backups


def test_what_is_given_reaches_the_processes():
    (container,) = by_component("shards")["code"]["spec"]["containers"]
    given = environment("shards", container)

    assert given["PRESAGE_STREAM_QUEUE_BYTES"] == "2097152"
    assert given["PRESAGE_LIVE_SILENCE_S"] == "7.5"
    assert given["PRESAGE_LIVE_STANDBY_DEFERS"] == "true"
    changed = resources("--values", str(CHART / "ci/shards.yaml"), "--set", "settings.PRESAGE_BACKFILL_DAYS=31")
    sums = [
        {
            each["spec"]["template"]["metadata"]["annotations"]["checksum/settings"]
            for each in of
            if each["kind"] in LASTING
        }
        for of in (rendered("shards"), changed)
    ]
    assert [len(each) for each in sums] == [1, 1]
    assert sums[0] != sums[1], "a process reads its settings when it starts"


def test_the_rules_are_those_of_the_documentation():
    (rules,) = of_kind("monitoring", "PrometheusRule")

    assert rules["spec"] == yaml.safe_load((ROOT / "docs/operations/prometheus-rules.yml").read_text())


def test_the_database_is_made_for_migrations_that_are_no_superuser():
    (cluster,) = of_kind("monitoring", "Cluster")
    start = cluster["spec"]["bootstrap"]["initdb"]

    assert (start["database"], start["owner"]) == ("presage", "presage")
    assert start["postInitSQL"] == ["alter role presage createrole createdb"]
    assert start["postInitApplicationSQL"] == ["create extension timescaledb"]
    assert cluster["spec"]["postgresql"]["synchronous"] == {"method": "any", "number": 1}
    assert of_kind("monitoring", "ScheduledBackup") == []


def test_a_restore_reads_the_former_clusters_backups_and_writes_its_own():
    (cluster,) = of_kind("cloudnativepg", "Cluster")
    (backup,) = of_kind("cloudnativepg", "ScheduledBackup")
    (origin,), (own,) = cluster["spec"]["externalClusters"], cluster["spec"]["plugins"]

    assert cluster["spec"]["bootstrap"]["recovery"]["source"] == origin["name"]
    assert origin["plugin"]["parameters"] == {"barmanObjectName": "presage-backups", "serverName": "presage-database"}
    assert own["parameters"] == {"barmanObjectName": "presage-backups"}
    assert backup["spec"]["cluster"]["name"] == cluster["metadata"]["name"] == "presage-database-2"


def test_data_outlives_the_release():
    kept = {
        each["kind"]
        for each in rendered("cloudnativepg")
        if each["metadata"].get("annotations", {}).get("helm.sh/resource-policy") == "keep"
    }

    assert kept == {"Cluster", "PersistentVolumeClaim"}


MINIMAL = ["--values", CHART / "ci/minimal.yaml"]
CLUSTER = ["--set", "database.cluster.enabled=true"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([*MINIMAL, "--set", "imgae.tag=1"], "additional properties 'imgae' not allowed"),
        ([*MINIMAL, "--set", "settings.PRESAGE_LIVE_WINDOWS=1"], "'PRESAGE_LIVE_WINDOWS' not allowed"),
        ([*MINIMAL, "--set", "settings.PRESAGE_DEBUG_TOKEN=x"], "'PRESAGE_DEBUG_TOKEN' not allowed"),
        ([*MINIMAL, "--set", "live.shards=two"], "at '/live/shards': got string, want integer"),
        ([*MINIMAL, "--set", "live.shards=65"], "at '/live/shards'"),
        ([*MINIMAL, "--set", "image.tag=latest"], "at '/image/tag'"),
        ([*MINIMAL, "--set", "public.apiUrl=http://api.example.org"], "at '/public/apiUrl'"),
        ([*MINIMAL, "--set", "api.resources.limits.cpu=null"], "missing property 'cpu'"),
        ([*MINIMAL, "--set", "live.formerShards=1"], "live.formerShards is the number of shards before a change"),
        ([*MINIMAL, "--set", "public.ingress.enabled=true"], "public.ingress needs public.apiUrl"),
        ([*MINIMAL, "--set", "monitoring.enabled=true"], "monitoring.readers: say by its networks"),
        ([], "database.peers: say where the database is"),
        (CLUSTER, "database.cluster.image: name an image"),
        ([*MINIMAL, "--kube-version", "1.30.0"], "incompatible with Kubernetes v1.30.0"),
        ([*MINIMAL, "--name-template", 41 * "x"], "more than 40 characters"),
    ],
)
def test_values_that_are_unknown_or_cannot_work_are_refused_by_name(given, message):
    done = helm("template", CHART, *given)

    assert done.returncode != 0
    assert message in done.stderr
