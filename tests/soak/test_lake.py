"""A writer of the lake that is killed again and again: nothing is lost or doubled."""

from __future__ import annotations

import datetime as dt
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from config.settings import Settings
from orchestration.lake import verifying
from orchestration.lake.catalogue import Lake
from orchestration.lake.tables import BY_NAME, TABLES
from tests.orchestration.lake.engines import duck  # noqa: F401 (a fixture)

pytestmark = pytest.mark.soak

ROOT = Path(__file__).parents[2]
KILLS = 50
DAYS, MARKETS, ROWS = 3, 20, 1_000  # rows of each kind, of each day, added before each start
NEW = """
from generate_series(%(first)s, %(first)s + %(rows)s::bigint - 1) n, unnest(%(days)s::timestamptz[]) day
"""
TRADES = f"""
insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd)
select day + (n * 997 %% 86400) * interval '1 s', 1 + n %% {MARKETS}, n %% 2, n, n, 1, 1000 + n %% 900000, 2, 1 {NEW}
"""
EVENTS = f"""
insert into book_events (ts, market_key, outcome, event_id, seq, side, price, size)
select day + (n * 997 %% 86400) * interval '1 s', 1 + n %% {MARKETS}, n %% 2, n, n, 1, 10000 * (1 + n %% 90), n {NEW}
"""
COUNTS = "select count(*), count(distinct (ts, seq)) from LAKE"


def test_fifty_kills_lose_and_double_nothing(conn, database_url, add_market, tmp_path, duck):  # noqa: F811
    now = dt.datetime.now(dt.UTC)
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    days = [midnight - dt.timedelta(days=2 + n) for n in range(DAYS)]
    for number in range(MARKETS):
        add_market(f"market-{number}", created_at=days[-1])
    dice, killed, finished = random.Random(1), 0, 0
    environment = {**os.environ, "PRESAGE_LAKE": f"{tmp_path}/lake", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "cli.main", "lake", "write", "--database-url", database_url]
    for number in range(10 * KILLS):
        for statement in (TRADES, EVENTS):
            conn.execute(statement, {"first": 1 + number * ROWS, "rows": ROWS, "days": days})
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL) as writer:
            deadline = time.monotonic() + dice.uniform(1.0, 6.0)  # the first second imports
            while writer.poll() is None and time.monotonic() < deadline:
                time.sleep(0.01)
            if writer.poll() is None:
                writer.send_signal(signal.SIGKILL)
                killed += 1
            else:
                finished += 1
                assert writer.returncode == 0
        if killed == KILLS:
            break
    assert subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0

    with Lake(database_url, Settings(_env_file=None, lake=f"{tmp_path}/lake")) as lake:
        swept = sum(verifying.sweep(conn, lake, table, now + dt.timedelta(days=2)) for table in TABLES)
        for table in TABLES:
            assert verifying.verify(conn, lake, table).faults == []
        for name in ("trades", "book_events"):
            (counted,) = duck(COUNTS, lake.table(BY_NAME[name]))
            (held,) = conn.execute(f"select count(*) from {name}").fetchone()
            print(f"{name}: {held:,} rows in the database, {counted[0]:,} in the lake, {counted[1]:,} different ones")
            assert counted == (held, held)
    print(f"{killed} killed, {finished} finished; {swept} files of killed writers and replaced ones deleted")
    assert killed == KILLS
