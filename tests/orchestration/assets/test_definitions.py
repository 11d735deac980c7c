"""The code location as a whole."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.instance.config import dagster_instance_config
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._core.storage.noop_compute_log_manager import NoOpComputeLogManager

from orchestration.definitions import defs

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def repository():
    return defs().get_repository_def()


@pytest.fixture(scope="module")
def assets(repository):
    nodes = [repository.asset_graph.get(key) for key in repository.asset_graph.get_all_asset_keys()]
    assert len(nodes) > 10
    return {node.key.to_user_string(): node for node in nodes}


def test_loading_brings_neither_great_expectations_nor_web3_along():
    program = (
        "import sys; from orchestration.definitions import defs; defs().get_repository_def().load_all_definitions(); "
        "print(sorted({'great_expectations', 'web3', 'pandas', 'gevent'} & set(sys.modules)))"
    )

    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_every_definition_loads_together(repository):
    repository.validate_loadable()

    assert {job.name for job in repository.get_all_jobs()} >= {"live"}


def test_every_asset_says_what_it_is(assets):
    unsaid = {
        name: missing
        for name, node in assets.items()
        if (missing := [what for what in ("description", "group_name", "kinds") if not getattr(node, what)])
    }

    assert unsaid == {}


def test_every_asset_is_made_by_us_and_has_a_freshness_policy(assets, repository):
    assert [name for name, node in assets.items() if not node.is_executable] == []
    # History is backfilled on request only: it is never late.
    unpartitioned = {name: node for name, node in assets.items() if not node.partitions_def}
    assert [name for name, node in unpartitioned.items() if node.freshness_policy is None] == []


def test_every_job_sensor_and_schedule_says_what_it_does(repository):
    named = [*repository.get_all_jobs(), *repository.sensor_defs, *repository.schedule_defs]

    assert [one.name for one in named if not one.description and one.name != "__ASSET_JOB"] == []


def test_sensors_and_schedules_run_without_being_asked(repository):
    stopped = [
        one.name
        for one in [*repository.sensor_defs, *repository.schedule_defs]
        if one.default_status.value != "RUNNING"
    ]

    assert stopped == []


def test_the_live_job_is_neither_retried_nor_unbounded_nor_slowed_by_checks(repository):
    live = repository.get_job("live")

    assert live.tags["dagster/max_retries"] == "0"
    assert int(live.tags["dagster/max_runtime"]) > 0
    assert int(live.tags["dagster/priority"]) > int(repository.get_job("discovery").tags["dagster/priority"])
    assert live.asset_layer.asset_graph.asset_check_keys == set()


@pytest.mark.filterwarnings("ignore:Property `ScheduleDefinition.environment_vars`")  # Dagster reads its own
def test_no_secret_stands_in_what_the_ui_is_told(monkeypatch):
    monkeypatch.setenv("DATABASE_URL", "postgresql://someone:very-secret@nowhere/presage")

    told = RepositorySnap.from_def(defs().get_repository_def())

    database = next(resource for resource in told.resources if resource.name == "database")
    assert database.configured_values["url"].name == "DATABASE_URL"
    assert "very-secret" not in dg.serialize_value(told)


@pytest.mark.parametrize(
    ("file", "kind"), [("workspace.yaml", "python_module"), ("workspace.docker.yaml", "grpc_server")]
)
def test_a_workspace_names_the_location_that_the_project_names(file, kind):
    (entry,) = yaml.safe_load((ROOT / file).read_text())["load_from"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["dg"]["project"]

    assert entry[kind]["location_name"] == project["code_location_name"]
    assert entry[kind].get("module_name", "orchestration.definitions") == project["code_location_target_module"]


def test_dagsters_own_settings_are_understood(tmp_path, monkeypatch):
    monkeypatch.setenv("DAGSTER_PG_URL", "postgresql+psycopg2://nowhere/dagster")
    (tmp_path / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())

    config, _ = dagster_instance_config(str(tmp_path))

    assert config["telemetry"] == {"enabled": False}
    assert config["nux"] == {"enabled": False}
    assert config["compute_logs"]["class"] == NoOpComputeLogManager.__name__
    assert config["storage"]["postgres"]["postgres_url"] == {"env": "DAGSTER_PG_URL"}
    assert config["run_coordinator"]["config"]["dequeue_interval_seconds"] == 1
    assert "dagster_home" not in os.environ


def test_jobs_run_in_one_process(repository):
    executors = {job.name: job.executor_def.name for job in repository.get_all_jobs()}

    assert set(executors.values()) == {dg.in_process_executor.name}
