"""What a stack reports while it starts."""

from __future__ import annotations

import json
from dataclasses import replace

from cli.stack.plan import Plan
from cli.stack.ports import Ports
from cli.stack.processes.supervisor import Supervisor
from cli.stack.stack import Stack
from upstream.sandbox.server import Sandbox


def test_what_of_a_tape_is_played_is_said_and_kept_for_the_json(tmp_path):
    folder = tmp_path / "tape"
    folder.mkdir()
    trade = {"timestamp": 1_770_479_519, "asset": "7", "conditionId": "0x" + "1" * 64, "side": "BUY", "price": 0.5}
    (folder / "trades.json").write_text(json.dumps([trade | {"size": 3}, trade | {"size": -3}]))
    (folder / "notes.txt").write_text("remember the milk\n")
    said = []
    with Sandbox(tape=folder) as exchange:
        plan = Plan(data_dir=tmp_path, source="tape", tape=folder, ports=replace(Ports.of(8080), sandbox=exchange.port))
        told = Stack(plan, Supervisor(print), said.append)
        told._report_tape()

    assert said == [
        "tape: 1 of 2 files used, 1 of their 2 rows",
        (
            "tape: trades.json: Data API trades: 1 of 2 rows used; 1 left out: malformed size (row 2); "
            "1 assigned: transaction hashes"
        ),
        "tape: not read: notes.txt: unknown kind: columns remember the milk",
    ]
    assert told.tape["unread"] == {"notes.txt": "unknown kind: columns remember the milk"}
    assert told.tape["files"][0]["used"] == 1
