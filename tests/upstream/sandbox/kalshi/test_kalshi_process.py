"""The sandbox Kalshi as a process of its own."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S, until
from upstream.sandbox.kalshi.__main__ import main

ROOT = Path(__file__).parents[4]
COMMAND = [sys.executable, "-W", "error", "-m", "upstream.sandbox.kalshi"]


def test_it_runs_in_real_time_says_where_it_is_and_writes_its_log(tmp_path, http):
    log = tmp_path / "log.jsonl"
    command = [*COMMAND, "--port", "0", "--markets", "1000", "--rate", "300", "--log", str(log)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = re.search(r"http://\S+", process.stdout.readline()).group()

            def status():
                return http.get(f"{url}/sandbox/status").json()

            until(lambda: status()["played"]["made"] > 200)
            assert http.get(f"{url}/trade-api/v2/markets").json()["markets"]
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE_S)
            assert process.stderr.read() == ""
        finally:
            process.kill()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["n"] for line in lines] == list(range(1, len(lines) + 1))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--faults", '{"kind": "quake"}'), "--faults: Invalid enum value"),
        (("--key", "id=/nowhere"), "not a public key"),
        (("--tape", "/nowhere"), "no folder of recordings"),
        (("--markets", "1"), "a simulation has 20 to"),
    ],
)
def test_arguments_that_make_no_sense_are_refused_in_one_sentence(monkeypatch, capsys, arguments, said):
    monkeypatch.setattr(sys, "argv", ["kalshi", *arguments])
    with pytest.raises(SystemExit) as left:
        main()

    assert left.value.code
    assert said in capsys.readouterr().err
