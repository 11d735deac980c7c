"""Small cuts of the recordings, to be changed and written as a folder."""

import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 12  # of each cut
WITHOUT_HASH = ("timestamp", "title", "name", "size", "price", "side", "asset", "conditionId", "proxyWallet", "outcome")
RECORDED = (  # one of every kind that is read, and two that are not
    "ws_market/20250701_mlb-cin-bos-2025-07-01_polymarket-market-events.csv.gz",
    "ws_market/old_shape_price_change_2025-01.csv.gz",
    "ws_market/nba_ws_20260215_175157.parquet",
    "books/btc15m_l2_books.parquet",
    "books/btc15m_markets.parquet",
    "books/selcuk_book_snapshots.csv.gz",
    "books/selcuk_active_markets.csv.gz",
    "books/btc_hf_2026-02-17_PM_markets.csv",
    "trades/live_trades_updown_2026-03-10.csv.gz",
    "trades/data_api_trades_nobel_2025-10.csv.gz",
    "trades/data_api_trades_100_raw.json",
    "trades/btc5m_1779805500_trades_ticks.json.gz",
    "trades/large_trades_sigil.csv.gz",
    "clob/books_fed-decision-in-june-825.json.gz",
    "clob/sampling_markets_1000.json.gz",
    "gamma/BTC-5m-markets-2026-07-24.jsonl.gz",
    "gamma/gamma-event_fed-decision-in-june-825.json.gz",
    "gamma/gamma-search_fed-decision-in-june-825.json.gz",
    "gamma/markets_20_2024-07.json.gz",
    "data_api/positions.json",
)


class Cut:
    """The first rows of a recorded file, to be changed and written."""

    def __init__(self, path: Path) -> None:
        data = path.read_bytes()
        self.data = gzip.decompress(data) if path.suffix == ".gz" else data
        self.name = path.name.removesuffix(".gz")
        self.rows: list[dict] = []
        self.columns: list[str] = []
        self.whole: dict = {}
        self.inside = ""
        if self.name.endswith(".csv"):
            self._of_rows(list(csv.DictReader(io.StringIO(self.data.decode(), newline=""))))
        elif self.name.endswith(".parquet"):
            self._of_rows(pq.read_table(io.BytesIO(self.data)).slice(0, ROWS).to_pylist())
        elif self.name.endswith(".jsonl"):
            self._of_rows([json.loads(line) for line in self.data.splitlines()[:ROWS]])
        else:
            self._of_json(json.loads(self.data))

    def _of_rows(self, rows: list[dict]) -> None:
        self.rows, self.columns = rows[:ROWS], list(dict.fromkeys(key for row in rows[:ROWS] for key in row))

    def _of_json(self, whole) -> None:
        if isinstance(whole, dict):
            self.inside = next((name for name in ("data", "events", "markets", "trades") if name in whole), "")
            self.whole = whole
            whole = whole[self.inside]
        self._of_rows([row if isinstance(row, dict) else dict(enumerate(row)) for row in whole[:ROWS]])

    def written(self) -> bytes:
        if self.name.endswith(".csv"):
            out = io.StringIO(newline="")
            writer = csv.DictWriter(out, self.columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(self.rows)
            return out.getvalue().encode("utf-8", "surrogatepass")
        if self.name.endswith(".parquet"):
            rows = [{name: row.get(name) for name in self.columns} for row in self.rows]
            try:
                table = pa.Table.from_pylist(rows)
            except (pa.ArrowException, OverflowError, UnicodeEncodeError):  # values of several types
                table = pa.Table.from_pylist([{key: repr(value) for key, value in row.items()} for row in rows])
            pq.write_table(table, out := io.BytesIO())
            return out.getvalue()
        rows = [{name: row[name] for name in self.columns if name in row} for row in self.rows]
        if self.name.endswith(".jsonl"):
            return "".join(json.dumps(row) + "\n" for row in rows).encode()
        if self.inside == "trades":
            return json.dumps(self.whole | {"trades": [list(row.values()) for row in rows]}).encode()
        return json.dumps(self.whole | {self.inside: rows} if self.inside else rows).encode()


def simplified(cuts) -> bytes:
    """Return the /simplified-markets response for the markets of a recorded catalogue."""
    kept = ("condition_id", "rewards", "tokens", "active", "closed", "archived", "accepting_orders")
    rows = json.loads(gzip.decompress(cuts["clob/sampling_markets_1000.json.gz"].read_bytes()))["data"][:ROWS]
    answer = {"data": [{name: row[name] for name in kept} for row in rows], "next_cursor": "LTE=", "limit": ROWS}
    return json.dumps(answer).encode()


def without_hash(cuts, rows: slice = slice(ROWS)) -> bytes:
    """Return Data API trades as a collector kept them: ten columns, dates for times."""
    with gzip.open(cuts["trades/data_api_trades_nobel_2025-10.csv.gz"], "rt", newline="") as lines:
        trades = list(csv.DictReader(lines))[rows]
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, WITHOUT_HASH, extrasaction="ignore")
    writer.writeheader()
    for trade in trades:
        trade["timestamp"] = str(pa.scalar(int(trade["timestamp"]), pa.timestamp("s")).as_py())
        writer.writerow(trade)
    return out.getvalue().encode()


def put(folder: Path, **contents: bytes) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return folder
