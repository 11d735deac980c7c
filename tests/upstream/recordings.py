"""Recordings of the exchange's data, restored to the original format."""

import csv
import gzip
import itertools
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

SIDES = {"bid": "BUY", "ask": "SELL", "BUY": "BUY", "SELL": "SELL"}


def text(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def gamma_markets(recorded: Path) -> list[bytes]:
    """Return every raw market object of the recordings, old and new."""
    folder = recorded / "gamma"
    objects: list[Any] = []
    for name in ("markets_20_2024-07", "markets_600_2026-01", "markets_legacy_20"):
        objects += json.loads(text(folder / f"{name}.json.gz"))
    objects += json.loads(text(folder / "markets_open_200_2026-02-13.json.gz"))["markets"]
    objects += [json.loads(line)["raw"] for line in text(folder / "BTC-5m-markets-2026-07-24.jsonl.gz").splitlines()]
    return [json.dumps(each).encode() for each in objects]


def gamma_events(recorded: Path) -> list[dict[str, Any]]:
    folder = recorded / "gamma"
    found = json.loads(text(folder / "gamma-search_fed-decision-in-june-825.json.gz"))["events"]
    found += json.loads(text(folder / "gamma_events.json"))
    event = json.loads(text(folder / "gamma-event_fed-decision-in-june-825.json.gz"))
    return [*found, *(event if isinstance(event, list) else [event])]


def captures(recorded: Path) -> list[Path]:
    return sorted((recorded / "ws_market").glob("*_polymarket-market-events.csv.gz"))


def capture(path: Path) -> Iterator[tuple[dict[str, Any], list[dict[str, str]]]]:
    """Yield each message of a capture, reassembled, with the recorder's rows it was made from."""
    with gzip.open(path, "rt", newline="") as file:
        rows = [row for row in csv.DictReader(file) if _whole(row)]
    of_message = ("asset_id", "hash", "timestamp", "event_type")
    for (asset_id, digest, timestamp, kind), group in itertools.groupby(rows, lambda row: [row[k] for k in of_message]):
        levels = list(group)
        entries = [{"price": row["price"], "side": SIDES[row["side"]], "size": row["size"]} for row in levels]
        message = {
            "event_type": kind,
            "market": "0x" + levels[0]["market_id"].rjust(64, "0"),
            "asset_id": asset_id,
            "hash": digest,
            "timestamp": timestamp,
        }
        if kind == "book":
            for name, side in (("bids", "BUY"), ("asks", "SELL")):
                message[name] = [{"price": e["price"], "size": e["size"]} for e in entries if e["side"] == side]
        else:
            message["changes"] = entries
        yield message, levels


def _whole(row: dict[str, str]) -> bool:
    """Return whether a row is complete: some captures hold malformed lines, or end in the middle of one."""
    try:
        float(row["price"]), float(row["size"]), int(row["timestamp"])
    except (TypeError, ValueError):
        return False
    return None not in row and None not in row.values() and row["side"] in SIDES


def old_price_changes(recorded: Path) -> Iterator[dict[str, Any]]:
    """Yield the market channel's price_change messages as of January 2025."""
    with gzip.open(recorded / "ws_market" / "old_shape_price_change_2025-01.csv.gz", "rt", newline="") as file:
        for row in csv.DictReader(file):
            instant = datetime.strptime(row["timestamp"], "%Y-%m-%d %H:%M:%S.%f %z")
            yield {
                "event_type": "price_change",
                "asset_id": row["asset_id"],
                "market": row["market"],
                "hash": row["hash"],
                "timestamp": str(round(instant.timestamp() * 1000)),
                "changes": json.loads(row["changes"]),
            }


def data_api_trades(path: Path) -> list[dict[str, Any]]:
    """Return rows of /trades kept as CSV, with their types restored."""
    with gzip.open(path, "rt", newline="") as file:
        return [
            row
            | {
                "size": float(row["size"]),
                "price": float(row["price"]),
                "timestamp": int(row["timestamp"]),
                "outcomeIndex": int(row["outcomeIndex"]),
            }
            for row in csv.DictReader(file)
        ]
