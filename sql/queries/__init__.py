"""Named queries, one file per topic: `queries.markets.listed(conn, status=…)`; `help()` of one shows its comment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aiosql


def _read(topic: str) -> Any:
    return aiosql.from_path(Path(__file__).parent / f"{topic}.sql", "psycopg")


accounts = _read("accounts")
activity = _read("activity")
aggregates = _read("aggregates")
audit = _read("audit")
backfill = _read("backfill")
backups = _read("backups")
books = _read("books")
candles = _read("candles")
capture = _read("capture")
catalogue = _read("catalogue")
checks = _read("checks")
coverage = _read("coverage")
cursors = _read("cursors")
debug = _read("debug")
diagnosis = _read("diagnosis")
exports = _read("exports")
feed = _read("feed")
figures = _read("figures")
keys = _read("keys")
leaderboards = _read("leaderboards")
markets = _read("markets")
metering = _read("metering")
overview = _read("overview")
packs = _read("packs")
parameters = _read("parameters")
pipeline = _read("pipeline")
positions = _read("positions")
prices = _read("prices")
quality = _read("quality")
quality_rows = _read("quality_rows")
rankings = _read("rankings")
replays = _read("replays")
retention = _read("retention")
settlement = _read("settlement")
signals = _read("signals")
site = _read("site")
stream = _read("stream")
taxonomy = _read("taxonomy")
trades = _read("trades")
udf = _read("udf")
wallets = _read("wallets")
webhooks = _read("webhooks")
