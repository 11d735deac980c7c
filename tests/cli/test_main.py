"""The command line: help, options, ports."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from cli.main import app
from cli.stack.plan_builder import plan
from cli.stack.ports import Ports, TakenError, choose

runner = CliRunner()


def test_help_names_every_command():
    shown = runner.invoke(app, ["--help"])

    assert shown.exit_code == 0
    for command in ("demo", "up", "migrate", "bench", "key", "openapi"):
        assert command in shown.output


def test_help_imports_nothing_heavy():
    code = (
        "import sys\nfrom typer.testing import CliRunner\nfrom cli.main import app\n"
        "assert CliRunner().invoke(app, ['demo', '--help']).exit_code == 0\n"
        "heavy = 'dagster', 'pandas', 'psycopg', 'sqlalchemy', 'falcon', 'numpy'\n"
        "print([name for name in heavy if name in sys.modules])"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--live", "--simulate", "3"], "are mutually exclusive"),
        (["--live", "--tape", "."], "are mutually exclusive"),
        (["--simulate", "3", "--speed", "2"], "--speed requires --tape"),
        (["--live", "--rate", "2"], "--rate and --markets require --simulate"),
        (["--live", "--exchanges", "polymarket,kalshi"], "--exchanges requires --simulate"),
        (["--exchanges", "kalshi"], "is not polymarket, alone or with kalshi"),
        (["--exchanges", "polymarket,polymarket"], "is not polymarket, alone or with kalshi"),
        (["--tape", ".", "--backfill", "3"], "--backfill cannot be used with --tape"),
    ],
)
def test_options_that_contradict_each_other_are_refused(options, said):
    refused = runner.invoke(app, ["demo", *options], env={"COLUMNS": "200"})

    assert refused.exit_code == 2
    assert said in refused.output


def test_a_simulation_has_a_fortnight_behind_it_and_others_what_is_asked_for(tmp_path):
    assert plan().backfill_days == 14
    assert plan(backfill_days=0).backfill_days == 0
    assert plan(live=True).backfill_days == 0
    assert plan(live=True, backfill_days=30).backfill_days == 30
    assert plan(tape=tmp_path).backfill_days == 0


def test_the_simulation_is_the_default_and_says_so():
    made = plan(port_base=None)

    assert made.source == "simulated"
    assert "simulated" in made.label


def test_the_plan_names_the_tape(tmp_path):
    made = plan(tape=tmp_path, speed=5.0)

    assert made.source == "tape"
    assert str(tmp_path) in made.label


def test_a_taken_port_is_named_with_its_purpose():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with pytest.raises(TakenError, match=f"{port} .for the sandbox.*--port-base"):
            choose(port - 1)


def test_without_a_wish_ports_are_found_around_those_taken():
    first = choose(None)
    with socket.create_server(("127.0.0.1", first.dagster)):
        second = choose(None)

    assert second.api > first.api
    assert second == Ports.of(second.api)


def test_addresses_are_ready_to_be_opened():
    made = plan(port_base=None)

    assert made.urls() == {
        "api": f"http://127.0.0.1:{made.ports.api}",
        "stream": f"ws://127.0.0.1:{made.ports.api}/stream",
        "dagster": f"http://127.0.0.1:{made.ports.dagster}",
        "site": f"http://127.0.0.1:{made.ports.site}",
    }


def test_unknown_benchmarks_are_refused_by_name():
    refused = runner.invoke(app, ["bench", "nothing"], env={"COLUMNS": "200"})

    assert refused.exit_code == 2
    assert "nothing" in refused.output
    assert "ingest" in refused.output


def test_the_exit_status_of_a_run_is_that_of_the_command(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("cli.stack.demo.run", lambda made, **how: asked.append((made.source, how)) or 3)

    ended = runner.invoke(app, ["demo", "--for", "90", "--fresh", "--json", str(tmp_path / "out.json")])

    assert ended.exit_code == 3
    assert asked == [("simulated", {"seconds": 90.0, "json_file": tmp_path / "out.json", "fresh": True})]


def test_the_document_of_the_api_is_printed_or_written(tmp_path):
    from api.openapi.document import encoded

    printed = runner.invoke(app, ["openapi"])
    written = runner.invoke(app, ["openapi", str(tmp_path / "openapi.json")])

    assert json.loads(printed.stdout) == json.loads(encoded())
    assert (tmp_path / "openapi.json").read_text() == printed.stdout
    assert (written.exit_code, written.output) == (0, "")


def test_a_setting_that_is_wrong_is_named_without_its_value_and_without_a_traceback(tmp_path):
    given = {"PRESAGE_DEBUG_TOKEN": "short secret", "PRESAGE_API_PORT": "99999"}
    command = [sys.executable, "-m", "cli.main", "key", "list"]

    done = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "presage: PRESAGE_API_PORT: Input should be less than or equal to 65535",
        "presage: PRESAGE_DEBUG_TOKEN: Value should have at least 32 items after validation, not 12",
    ]


def test_an_unknown_revision_is_an_error_in_a_line(database_url):
    command = [sys.executable, "-m", "cli.main", "migrate", "nonsense", "--database-url", database_url]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "presage: Can't locate revision identified by 'nonsense'"
    assert "Traceback" not in done.stderr
