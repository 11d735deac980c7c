"""`presage replay`: recorded data served on a local port."""

from __future__ import annotations

import datetime as dt
import json
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import typer
from websockets.sync.client import connect

from cli.commands import replay
from tests.api.replay.past import HASHES, MS, lived
from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[3]
NOW = dt.datetime(2026, 11, 21, 12, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("2026-11-21T10:00:00Z", dt.timedelta(hours=2)),
        ("2026-11-21 10:00", dt.timedelta(hours=2)),
        ("1795255200000", dt.timedelta(hours=2)),
        ("90m", dt.timedelta(minutes=90)),
        ("1.5d", dt.timedelta(hours=36)),
    ],
)
def test_a_moment_may_be_said_in_several_ways(said, meant):
    assert NOW - replay.moment(said, NOW) == meant


@pytest.mark.parametrize("said", ["", "noon", "m", "9e99d", "99999999999999999999"])
def test_what_is_no_moment_is_refused(said):
    with pytest.raises(typer.BadParameter, match="not a valid time"):
        replay.moment(said, NOW)


@pytest.mark.parametrize(("since", "until"), [("1h", "2h"), ("0s", None)])
def test_the_end_lies_behind_the_beginning(since, until):
    with pytest.raises(typer.BadParameter, match="--from must be before"):
        replay.span(since, until, 1.0)


def test_a_program_written_for_the_exchange_is_played_the_past(database_url, conn):
    rain = lived(conn)
    command = [
        *(sys.executable, "-m", "cli.main", "replay", "--speed", "0", "--port", "0", "--database-url", database_url),
        *("--from", str(MS - 1000), "--to", str(MS + 130_000)),
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            (address,) = re.findall(r"ws://\S+", process.stdout.readline())
            for _ in range(2):  # each connection is played all of it
                with connect(address) as socket:
                    socket.send("PING")
                    assert socket.recv(PATIENCE_S) == "PONG"
                    socket.send(json.dumps({"type": "market", "assets_ids": rain["tokens"][:1]}))
                    frames = [json.loads(frame) for frame in socket]
                assert (socket.protocol.close_code, socket.protocol.close_reason) == (1000, "the replay is over")
                assert [frame["hash"] for frame in frames[1:] if "hash" in frame] == HASHES[:1]
                assert len(frames) == 7
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE_S) == 0


@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_replay_that_is_interrupted_while_it_starts_ends(monkeypatch, number):
    """By a signal that another thread gets, too, as a library's may."""
    monkeypatch.setattr(replay.typer, "echo", lambda _: raised_in_another_thread(number))
    before = [signal.getsignal(each) for each in replay.ENDING]

    replay.run("", replay.span("2h", "1h", 1.0), 0)

    assert [signal.getsignal(each) for each in replay.ENDING] == before


def raised_in_another_thread(number):
    thread = threading.Thread(target=signal.raise_signal, args=[number])
    thread.start()
    thread.join()
