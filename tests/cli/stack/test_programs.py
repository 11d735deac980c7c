"""The commands and environments of a plan's programs."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from cli.stack.plan import Plan
from cli.stack.plan_database import EmbeddedDatabase, PlanDatabase
from cli.stack.ports import Ports
from cli.stack.programs import NICENESS, Programs
from sql.roles.rights import API, PIPELINE, SITE
from upstream.kalshi.signing import read_signer
from upstream.sandbox.kalshi.signatures import public_key


def programs(tmp_path, **given) -> Programs:
    plan = Plan(data_dir=tmp_path, **{"ports": Ports.of(8080), "source": "simulated", **given})
    return Programs(plan, PlanDatabase(plan, print, "postgresql:///presage", "postgresql:///dagster"), print)


def test_the_past_of_a_simulation_ends_where_it_was_first_started_over_its_data(tmp_path):
    asked = programs(tmp_path, backfill_days=14)
    asked.plan.dagster_home.mkdir(parents=True)

    first, again = (asked.sandboxes()[0].command for _ in range(2))

    assert first == again
    assert first[first.index("--past") + 1] == "14"
    assert int(first[first.index("--past-until-ms") + 1]) > 1_700_000_000_000
    assert asked.environment()["PRESAGE_BACKFILL_DAYS"] == "14"
    assert "--past" not in programs(tmp_path).sandboxes()[0].command


def test_a_simulation_is_asked_for_with_all_that_was_wished(tmp_path):
    wished = programs(tmp_path, seed=7, rate=500.0, markets=30, truth=tmp_path / "truth").sandboxes()[0]

    command = " ".join(wished.command)
    assert "--port 8081 --simulate 7 --rate 500.0 --markets 30" in command
    assert command.endswith(f"--log {tmp_path / 'truth'}")


def test_both_exchanges_are_simulated_where_both_are_wished_and_the_others_have_its_key(tmp_path):
    made = programs(tmp_path, exchanges=("polymarket", "kalshi"), seed=3)
    _, kalshi = made.sandboxes()
    environment = made.environment()

    key_id, _, public = kalshi.command[kalshi.command.index("--key") + 1].partition("=")
    assert "--port 8086 --simulate 3" in " ".join(kalshi.command)
    assert environment["PRESAGE_EXCHANGES"] == "polymarket,kalshi"
    assert environment["PRESAGE_KALSHI_URL"] == "http://127.0.0.1:8086/trade-api/v2"
    assert environment["PRESAGE_KALSHI_KEY_ID"] == key_id
    signer = read_signer(key_id, Path(environment["PRESAGE_KALSHI_PRIVATE_KEY_FILE"]))
    assert signer is not None
    assert public.endswith(".pub")
    assert public_key(Path(public).read_bytes())
    assert not stat.S_IMODE(Path(environment["PRESAGE_KALSHI_PRIVATE_KEY_FILE"]).stat().st_mode) & 0o077
    again = programs(tmp_path, exchanges=("polymarket", "kalshi"))
    assert again.environment()["PRESAGE_KALSHI_PRIVATE_KEY_FILE"] == environment["PRESAGE_KALSHI_PRIVATE_KEY_FILE"]

    alone = programs(tmp_path)
    assert len(alone.sandboxes()) == 1
    assert "PRESAGE_KALSHI_KEY_ID" not in alone.environment()


def test_a_tape_is_played_at_its_speed(tmp_path):
    wished = programs(tmp_path, source="tape", tape=tmp_path, speed=4.0).sandboxes()[0]

    assert f"--tape {tmp_path} --speed 4.0" in " ".join(wished.command)


@pytest.mark.parametrize("source", ["simulated", "tape"])
def test_every_program_speaks_to_the_sandbox_and_labels_what_it_stores(tmp_path, source):
    told = programs(tmp_path, source=source).environment()

    assert told["PRESAGE_SOURCE"] == source
    names = ("GAMMA_URL", "CLOB_URL", "CLOB_SOCKET_URL", "DATA_API_URL", "CHAIN_RPC_URLS")
    addresses = [told[f"PRESAGE_{name}"] for name in names]
    assert all("127.0.0.1:8081" in address for address in addresses)


def test_the_real_exchange_is_left_to_the_settings(tmp_path):
    told = programs(tmp_path, source="exchange").environment()

    assert told["PRESAGE_SOURCE"] == "exchange"
    assert not [
        name for name in told if name.startswith(("PRESAGE_GAMMA", "PRESAGE_CLOB", "PRESAGE_DATA_API", "PRESAGE_CHAIN"))
    ]


def test_the_code_server_may_wait_as_long_as_the_database_takes(tmp_path):
    assert programs(tmp_path).code_server().ready_within_s >= EmbeddedDatabase.ready_within_s


def test_dagster_is_told_its_driver_and_its_own_database(tmp_path):
    told = programs(tmp_path).code_server().environment

    assert told["DAGSTER_PG_URL"] == "postgresql+psycopg2:///dagster"
    assert told["DATABASE_URL"] == "postgresql:///presage"  # the owner's: no other login is known


def test_what_serves_clients_gives_way_to_what_live_data_waits_for(tmp_path):
    made = programs(tmp_path, dagster_password="secret")

    serving, pipeline = (made.api(), made.site(), made.webserver()), (made.code_server(), made.runs(), made.daemon())
    assert [program.niceness for program in serving] == [NICENESS] * 3
    assert [program.niceness for program in pipeline] == [0] * 3


def test_the_daemons_heartbeats_are_read_by_its_own_login(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("cli.stack.programs.daemon_alive_since", lambda url, _: asked.append(url))
    made = programs(tmp_path)
    made.database.logins = {PIPELINE: "postgresql://presage_pipeline_login@host/presage"}

    made.daemon().is_ready()

    (url,) = asked
    named = conninfo_to_dict(url)
    assert (named["user"], named["dbname"]) == ("presage_pipeline_login", "dagster")


def test_a_daemon_that_waits_for_anothers_end_holds_nothing_up(tmp_path, monkeypatch, database_url):
    monkeypatch.setattr("cli.stack.programs.daemon_alive_since", lambda *_: False)
    program = programs(tmp_path).daemon()
    program.log.parent.mkdir(parents=True, exist_ok=True)
    lead = (
        "import logging, sys; from orchestration import daemon; logging.basicConfig(level='INFO');"
        "daemon.Lead(sys.argv[1], sys.exit, lambda _: sys.exit(0)).wait()"
    )
    before = program.is_ready()
    with psycopg.connect(database_url, autocommit=True) as other, program.log.open("w") as log:
        other.execute("select pg_advisory_lock(hashtextextended('presage.daemon', 0))")
        subprocess.run([sys.executable, "-c", lead, database_url], stderr=log, check=True)

    assert not before
    assert program.is_ready()


def test_each_process_knows_its_own_login_and_no_other(tmp_path):
    urls = {role: f"postgresql://{role}_login:of-{role}@host/presage" for role in (PIPELINE, API, SITE)}
    made = programs(tmp_path)
    made.database.logins = urls
    of_roles = {
        PIPELINE: (made.code_server(), made.daemon(), made.webserver()),
        API: (made.api(),),
        SITE: (made.site(),),
    }

    for role, theirs in of_roles.items():
        for program in theirs:
            assert program.environment["DATABASE_URL"] == urls[role]
            known = " ".join(program.environment.values())
            assert [each for each in urls if f"of-{each}@" in known] == [role]
    assert made.code_server().environment["DAGSTER_PG_URL"] == (
        f"postgresql+psycopg2://{PIPELINE}_login:of-{PIPELINE}@host/dagster"
    )
    assert made.sandboxes()[0].environment["DATABASE_URL"] == ""


def test_rows_of_the_real_exchange_are_labelled_as_the_settings_say(tmp_path):
    told = programs(tmp_path, source="exchange", stored_as="polymarket")

    assert told.environment()["PRESAGE_SOURCE"] == told.plan.label_of_rows == told.plan.database == "polymarket"


def test_the_password_of_dagsters_ui_is_made_and_shown_once_and_kept_for_its_owner_alone(tmp_path):
    told = programs(tmp_path)
    told.report = (said := []).append

    first, again = (told.dagster_password() for _ in range(2))

    assert first == again == told.webserver().environment["PRESAGE_DAGSTER_PASSWORD"]
    assert len(first) >= 32
    assert [first in line for line in said] == [True]
    assert stat.S_IMODE((tmp_path / "dagster.password").stat().st_mode) == 0o600
    assert "PRESAGE_DAGSTER_PASSWORD" not in told.environment()


def test_a_password_of_the_settings_is_neither_shown_nor_kept(tmp_path):
    told = programs(tmp_path, dagster_password="correct horse battery staple")
    told.report = (said := []).append

    assert told.webserver().environment["PRESAGE_DAGSTER_PASSWORD"] == "correct horse battery staple"
    assert not said
    assert not list(tmp_path.iterdir())


def test_no_other_program_of_this_machine_is_believed_about_addresses(tmp_path):
    told = programs(tmp_path)

    assert told.environment()["PRESAGE_TRUSTED_PROXIES"] == ""
    assert programs(tmp_path, trusted_proxies="10.0.0.1").environment()["PRESAGE_TRUSTED_PROXIES"] == "10.0.0.1"
    assert told.api().environment["PRESAGE_SITE_TOKEN"] == told.site().environment["PRESAGE_SITE_TOKEN"]
    assert told.site_token != programs(tmp_path).site_token
    assert "PRESAGE_SITE_TOKEN" not in {**told.code_server().environment, **told.webserver().environment}
