"""Recorded catalogues: Gamma's own objects as they are, the order book API's and others' put into Gamma's words."""

from __future__ import annotations

import csv
import gzip
import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from upstream.sandbox.catalogue import Gamma, listed
from upstream.sandbox.made import assigned_condition, made, tag
from upstream.sandbox.recording import Listing
from upstream.sandbox.snapshots import CRYPTO
from upstream.sandbox.universe import iso

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

WINDOW_MS = 300_000


def gamma_markets(path: Path) -> tuple[list[Listing], list[Gamma]]:
    """Read Gamma objects, however they were kept: a list, a page, an event, a search, one a line. Events come along."""
    if path.name.endswith(".jsonl.gz"):
        with gzip.open(path, "rt") as lines:
            return [Listing(json.loads(line)["raw"], path.name) for line in lines], []
    whole = load(path)
    if isinstance(whole, list):
        whole = {"events" if whole and "markets" in whole[0] else "markets": whole}
    events: list[Gamma] = list(whole.get("events") or ()) if "id" not in whole else [whole]
    markets: list[Gamma] = list(whole.get("markets") or ()) if "id" not in whole else []
    for event in events:
        shown = {key: value for key, value in event.items() if key not in ("markets", "tags")}
        markets += [{**market, "events": [shown]} for market in event.get("markets") or ()]
    return [Listing(market, path.name) for market in markets if market.get("id")], [
        {key: value for key, value in event.items() if key != "markets"} for event in events if event.get("id")
    ]


def clob_markets(path: Path) -> tuple[list[Listing], int]:
    """Read a page of the order book API's markets; the second figure counts those without a condition or tokens."""
    rows = load(path)["data"]
    usable = [
        row
        for row in rows
        if row["condition_id"] and len(row["tokens"]) == 2 and all(one["token_id"] for one in row["tokens"])
    ]
    return [_from_clob(path.name, row) for row in usable], len(rows) - len(usable)


def up_down_markets(path: Path) -> list[Listing]:
    """Read up/down markets that a collector discovered, `selcuk_active_markets.csv.gz`."""
    found: dict[str, Listing] = {}
    with gzip.open(path, "rt", newline="") as lines:
        for row in csv.DictReader(lines):
            gamma = made(
                path.name,
                slug=row["market_slug"],
                question=row["question"],
                outcomes=("Up", "Down"),
                tokens=(row["token_id_up"], row["token_id_down"]),
                condition_id=row["condition_id"],
            )
            gamma["endDate"] = row["end_date"]
            found.setdefault(
                row["condition_id"], Listing(gamma, path.name, CRYPTO, moments_ms={"endDate": int(row["end_ts_ms"])})
            )
    return list(found.values())


def five_minute_markets(path: Path) -> list[Listing]:
    """Read BTC 5-minute markets of which slug and tokens are known, `btc_hf_2026-02-17_PM_markets.csv`."""
    with path.open(newline="") as lines:
        return [
            Listing(
                made(
                    path.name,
                    slug=row["slug"],
                    question=f"Bitcoin Up or Down, 5 minutes from {iso(int(row['timestamp']) * 1000)}",
                    outcomes=("Up", "Down"),
                    tokens=(row["up_token_id"], row["down_token_id"]),
                    condition_id=assigned_condition(row["slug"]),
                    assigned=["conditionId"],
                )
                | {
                    "eventStartTime": iso(int(row["timestamp"]) * 1000),
                    "endDate": iso(int(row["timestamp"]) * 1000 + WINDOW_MS),
                },
                path.name,
                CRYPTO,
            )
            for row in csv.DictReader(lines)
        ]


def capture_markets(path: Path) -> tuple[list[Listing], list[Gamma]]:
    """Read the markets and events of a capture reduced to best prices, `nba_ws_*.parquet`."""
    rows = pq.read_table(
        path, columns=["asset_id", "market_id", "question", "event_title", "event_id", "answer"]
    ).to_pylist()
    events: dict[str, Gamma] = {}
    tokens: dict[str, dict[int, str]] = {}
    questions: dict[str, dict[str, Any]] = {}
    for row in rows:
        events[row["event_id"]] = {
            "id": row["event_id"],
            "title": row["event_title"],
            "slug": f"recorded-event-{row['event_id']}",
            "closed": False,
        }
        tokens.setdefault(row["market_id"], {})[0 if row["answer"] == "Yes" else 1] = row["asset_id"]
        questions[row["market_id"]] = row
    listings = []
    for market_id, pair in tokens.items():
        if len(pair) == 2:
            slug = f"recorded-market-{market_id}"
            gamma = made(
                path.name,
                slug=slug,
                question=questions[market_id]["question"],
                outcomes=("Yes", "No"),
                tokens=(pair[0], pair[1]),
                condition_id=assigned_condition(slug, market_id),
                gamma_id=market_id,
                assigned=["conditionId", "slug"],
            )
            gamma["events"] = [events[questions[market_id]["event_id"]]]
            listings.append(Listing(gamma, path.name, [tag("nba", "NBA")]))
    return listings, list(events.values())


def newest(listings: Iterable[Listing]) -> Iterator[Listing]:
    """Keep of each market the object that was updated last; those without a condition go by their id."""
    best: dict[str, Listing] = {}
    for listing in listings:
        key = listing.gamma.get("conditionId") or str(listing.gamma["id"])
        held = best.get(key)
        if held is None or _updated(listing) > _updated(held):
            best[key] = listing
    return iter(best.values())


def load(path: Path) -> Any:
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return json.load(file)


def _updated(listing: Listing) -> datetime:
    return datetime.fromisoformat(listing.gamma.get("updatedAt") or "1970-01-01T00:00:00Z")


def _from_clob(source: str, row: Gamma) -> Listing:
    """Say in Gamma's words what the order book API says of a market."""
    tokens = row["tokens"]
    won = [one["winner"] for one in tokens]
    gamma = made(
        source,
        slug=row["market_slug"],
        question=row["question"],
        outcomes=[one["outcome"] for one in tokens],
        tokens=[one["token_id"] for one in tokens],
        condition_id=row["condition_id"],
        tick=row["minimum_tick_size"],
        description=row["description"],
    )
    prices = [str(int(one)) for one in won] if row["closed"] and any(won) else [str(one["price"]) for one in tokens]
    gamma |= {
        "outcomePrices": listed(prices),
        "questionID": row["question_id"],
        "endDate": row["end_date_iso"],
        "active": row["active"],
        "closed": row["closed"],
        "archived": row["archived"],
        "acceptingOrders": row["accepting_orders"],
        "enableOrderBook": row["enable_order_book"],
        "orderMinSize": row["minimum_order_size"],
        "negRisk": row["neg_risk"],
        "negRiskMarketID": row["neg_risk_market_id"],
        "negRiskRequestID": row["neg_risk_request_id"],
        "secondsDelay": row["seconds_delay"],
        "icon": row["icon"],
        "image": row["image"],
    }
    if row["accepting_order_timestamp"]:
        gamma["acceptingOrdersTimestamp"] = row["accepting_order_timestamp"]
    if row["game_start_time"]:
        gamma["gameStartTime"] = row["game_start_time"].replace("T", " ").replace("Z", "+00")
    if any(won):
        gamma["umaResolutionStatus"] = "resolved"
    labels = [label for label in row.get("tags") or () if label != "All"]
    return Listing(gamma, source, [tag("-".join(label.lower().split()), label) for label in labels])
