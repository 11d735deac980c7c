"""A Dagster instance for each test file."""

from __future__ import annotations

import dagster as dg
import pytest

from orchestration.definitions import defs
from orchestration.resources import Database, Exchange
from sql.roles.rights import PIPELINE
from tests.roles import login_url


@pytest.fixture(scope="module")
def instance():
    with dg.DagsterInstance.ephemeral() as running:
        yield running


@pytest.fixture
def make(instance, sandbox, database_url):
    """Materialise assets of the file's sandbox exchange."""

    def materialise(*definitions, **more):
        resources = {
            "database": Database(url=login_url(database_url, PIPELINE)),
            "exchange": Exchange(
                gamma_url=sandbox.gamma_url,
                clob_url=sandbox.clob_url,
                clob_socket_url=sandbox.socket_url,
                data_api_url=sandbox.data_api_url,
                source="simulated",
            ),
        }
        return dg.materialize(list(definitions), instance=instance, resources=resources, **more)

    return materialise


@pytest.fixture
def requested(database_url):
    """Return the runs that a schedule requests at an instant, evaluated as the daemon does."""
    repository = defs().get_repository_def()

    def ticked(schedule, at):
        with dg.build_schedule_context(
            scheduled_execution_time=at,
            resources={"database": Database(url=login_url(database_url, PIPELINE))},
            repository_def=repository,
        ) as context:
            return schedule.evaluate_tick(context).run_requests

    return ticked


@pytest.fixture
def tick(requested):
    """Return the partitions of these runs."""
    return lambda schedule, at: [request.partition_key for request in requested(schedule, at)]
