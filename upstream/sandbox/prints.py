"""Recorded trades."""

from __future__ import annotations

import csv
import gzip
import json
from typing import TYPE_CHECKING, Any

from upstream.micro import parse
from upstream.sandbox.book import BUY, SELL
from upstream.sandbox.made import assigned_token, assigned_tx, made, made_event
from upstream.sandbox.recording import Happening, Listing, Printed, Recording, Won
from upstream.sandbox.snapshots import CRYPTO

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from upstream.sandbox.catalogue import Gamma

WINDOW_MS = 300_000
Row = dict[str, Any]


def data_api_csv(path: Path) -> Recording:
    """Read Data API rows kept as CSV; a page that was served twice counts once."""
    with gzip.open(path, "rt", newline="") as lines:
        return _data_api(path.name, csv.DictReader(lines))


def data_api_json(path: Path) -> Recording:
    """Read an answer of the Data API's `/trades`."""
    return _data_api(path.name, json.loads(path.read_bytes()))


def up_down(path: Path) -> Recording:
    """Read trades of up/down markets, with times in ms.

    Only what the socket printed is played: the rows decoded from the chain, which have a maker, show trades of the same
    minute again, and each of them from both sides.
    """
    recording = Recording(path.name, "trades", [], [], group="up-down-2026-03-10")
    with gzip.open(path, "rt", newline="") as lines:
        for line in csv.DictReader(lines):
            if line["maker_address"]:
                recording.counted["rows decoded from the chain, left out"] += 1
                continue
            recording.happenings.append(
                Printed(
                    int(line["timestamp_ms"]),
                    line["token_id"],
                    BUY if line["side"] == "BUY" else SELL,
                    parse(line["price"]),
                    parse(line["size"]),
                    line["trade_id"],
                )
            )
    recording.happenings.sort(key=lambda one: one.at_ms)
    return recording


def candle(path: Path) -> Recording:
    """Read the trades of one BTC 5-minute market, and how it ended."""
    with gzip.open(path) as file:
        whole = json.load(file)
    tokens = [whole["up_token"], whole["down_token"]]
    start_ms = whole["cs"] * 1000
    gamma = made(
        path.name,
        slug=f"btc-updown-5m-{whole['cs']}",
        question="Bitcoin Up or Down, 5 minutes",
        outcomes=("Up", "Down"),
        tokens=tokens,
        condition_id=whole["cid"],
    )
    moments = {"eventStartTime": start_ms, "endDate": start_ms + WINDOW_MS}
    happenings: list[Happening] = [
        Printed(
            at * 1000,
            token,
            BUY if side == "BUY" else SELL,
            parse(price),
            parse(size),
            assigned_tx(path.name, row),
            wallet,
        )
        for row, (at, side, price, size, token, wallet) in enumerate(whole["trades"])
    ]
    happenings.append(Won(start_ms + WINDOW_MS, tokens[0 if whole["up_won"] else 1]))
    happenings.sort(key=lambda one: one.at_ms)
    recording = Recording(
        path.name, "trades", happenings, [Listing(gamma, path.name, CRYPTO, played=True, moments_ms=moments)]
    )
    recording.counted["transaction hashes assigned"] = len(whole["trades"])
    return recording


def _data_api(source: str, rows: Iterable[Row]) -> Recording:
    recording = Recording(source, "trades", [], [])
    seen: set[tuple[str, ...]] = set()
    markets: dict[str, list[Row]] = {}
    for row in rows:
        key = tuple(
            str(row[name]) for name in ("transactionHash", "asset", "proxyWallet", "side", "size", "price", "timestamp")
        )
        if key in seen:
            recording.counted["rows of pages served again, left out"] += 1
            continue
        seen.add(key)
        try:
            printed = Printed(
                int(row["timestamp"]) * 1000,
                row["asset"],
                BUY if row["side"] == "BUY" else SELL,
                parse(row["price"]),
                parse(row["size"]),
                row["transactionHash"],
                row["proxyWallet"],
            )
        except (ValueError, KeyError):
            recording.malformed += 1
            continue
        recording.happenings.append(printed)
        markets.setdefault(row["conditionId"], []).append(row)
    recording.happenings.sort(key=lambda one: one.at_ms)
    recording.listings += [_listing(source, condition_id, found) for condition_id, found in markets.items()]
    return recording


def _listing(source: str, condition_id: str, rows: list[Row]) -> Listing:
    """Describe a market by what its trades say; the outcome nobody traded gets a token of ours."""
    tokens: dict[int, str] = {}
    names: dict[int, str] = {}
    for row in rows:
        outcome = int(row["outcomeIndex"])
        tokens[outcome], names[outcome] = row["asset"], row["outcome"]
    assigned = [f"clobTokenIds[{outcome}]" for outcome in (0, 1) if outcome not in tokens]
    other = {"Yes": "No", "No": "Yes", "Up": "Down", "Down": "Up", "Over": "Under", "Under": "Over"}
    gamma: Gamma = made(
        source,
        slug=rows[0]["slug"],
        question=rows[0]["title"],
        outcomes=[names.get(outcome) or other.get(names.get(1 - outcome, ""), "Other") for outcome in (0, 1)],
        tokens=[tokens.get(outcome) or assigned_token(condition_id, outcome) for outcome in (0, 1)],
        condition_id=condition_id,
        assigned=assigned,
        tick=0.001,
    )
    gamma |= {"icon": rows[0]["icon"], "image": rows[0]["icon"]}
    if event_slug := rows[0].get("eventSlug"):
        gamma["events"] = [made_event(event_slug)]
    return Listing(gamma, source, played=True)
