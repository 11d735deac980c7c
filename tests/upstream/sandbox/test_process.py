"""The sandbox as a process of its own."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[3]
COMMAND = [sys.executable, "-W", "error", "-m", "upstream.sandbox"]


def test_it_says_where_it_is_and_stops_at_once_with_its_log_written(tmp_path):
    log = tmp_path / "log.jsonl"
    command = [
        *COMMAND,
        "--port",
        "0",
        "--simulate",
        "5",
        "--log",
        str(log),
        "--faults",
        '{"kind": "hang", "target": "/clob"}',
    ]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()
            url = re.search(r"http://\S+", line).group()
            with httpx.Client(trust_env=False) as http:
                while http.get(f"{url}/sandbox/status").json()["log"]["lines"] < 50:
                    time.sleep(0.05)
                with pytest.raises(httpx.ReadTimeout):
                    http.get(f"{url}/clob/ok", timeout=0.2)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            process.wait(60)
            took = time.monotonic() - began
        finally:
            process.kill()
        errors = process.stderr.read()

    assert "simulated exchange with 60 markets" in line
    assert took < 10  # without an interrupted shutdown: that would be among the errors
    assert errors == ""
    lines = log.read_text().splitlines()
    assert len(lines) >= 50
    assert json.loads(lines[-1])["n"] == len(lines)


def test_the_tape_is_told_while_it_is_read(small_tape):
    process = subprocess.Popen(
        [*COMMAND, "--port", "0", "--tape", str(small_tape)], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        said = [process.stdout.readline()]
        while "exchange with" not in said[-1]:
            assert said[-1], "it ended"
            said.append(process.stdout.readline())
    finally:
        process.terminate()
        process.wait(60)
        process.stdout.close()

    assert any(line.startswith("reading ws_market/") for line in said)
    assert any(re.fullmatch(r"read \d+ markets and 5 recordings in .* s\n", line) for line in said)
    assert said[-1].startswith("tape exchange with")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--simulate", "1", "--tape", "x"], "not allowed with"),
        (["--faults", '{"kind": "quake"}'], "--faults: Invalid enum value"),
        (["--faults", "nowhere.json"], "--faults: [Errno 2]"),
    ],
)
def test_wrong_arguments_are_told(arguments, complaint):
    done = subprocess.run([*COMMAND, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 2
    assert complaint in done.stderr


def test_the_exact_tape_can_be_printed(small_tape):
    done = subprocess.run(
        [sys.executable, "-m", "upstream.sandbox.tape.tape", str(small_tape), "--what", "trades"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    trades = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(trades) == 100 + 3982
    assert all(trade["condition_id"].startswith("0x") for trade in trades)
