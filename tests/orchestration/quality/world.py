"""A small healthy data set, market by market and block by block, so that one row can be corrupted."""

from __future__ import annotations

import itertools
import secrets
from datetime import UTC, datetime, timedelta

from orchestration import stream
from tests import stream_rows
from tests.factories import add_market, add_trades, insert

CENT = 10_000
WALLET, OTHER, CONTRACT = secrets.token_bytes(20), secrets.token_bytes(20), secrets.token_bytes(20)
_numbers = itertools.count(1)


def seq_of(ts, nth=0):
    return (int(ts.timestamp() * 1000) << 20) + nth


def instants():
    """Return the present and recent instants: as of the call, as a pass looks back by minutes only."""
    now = datetime.now(UTC)
    return now, now - timedelta(seconds=90)


def healthy_market(conn, slug=None):
    """Add a market with a row in each table; return its key."""
    now, ago = instants()
    event = insert(conn, "events", {"event_id": f"e{next(_numbers)}", "title": "An event", "tags": ["a tag"]})
    market = add_market(
        conn, slug, outcome_prices=[500_000, 500_000], tick_size=CENT, volume_usd=5, event_id=event["event_id"]
    )
    key = {"market_key": market["market_key"], "outcome": 0}
    insert(conn, "market_status_changes", {"market_key": key["market_key"], "to_status": "ACTIVE", "cause": "listed"})
    best = {"bid": 490_000, "ask": 510_000, "mid": 500_000, "bid_size": 10, "ask_size": 10}
    levels = {"bid_prices": [490_000, 480_000], "bid_sizes": [10, 20], "ask_prices": [510_000], "ask_sizes": [10]}
    for outcome in (0, 1):
        insert(conn, "live_prices", {**key, "outcome": outcome, **best, "last": 500_000, "ts": ago})
        insert(conn, "quotes", {**key, "outcome": outcome, "ts": ago - timedelta(seconds=5), **best})
    insert(conn, "live_books", {**key, **levels, "seq": seq_of(ago), "ts": ago, "verified": True})
    insert(conn, "book_anchors", {**key, **levels, "seq": seq_of(ago), "ts": ago})
    insert(conn, "book_events", {**key, "ts": ago, "event_id": next(_numbers), "seq": seq_of(ago), **levels})
    change = {"side": 1, "price": 490_000, "size": 10}
    insert(conn, "book_events", {**key, "ts": ago, "event_id": next(_numbers), "seq": seq_of(ago, 1), **change})
    add_trades(conn, market, [{"price": "0.5", "size": 10, "ts": ago, "tx_hash": secrets.token_bytes(32)}] * 2)
    prices = {"open": 500_000, "high": 500_000, "low": 500_000, "close": 500_000}
    window = {"window_start": now - timedelta(days=1), "window_end": now, "computed_at": now}
    insert(conn, "market_stats_24h", {**key, **prices, "volume": 20, "value_usd": 10, "trades": 2, **window})
    activity = {f"{what}_{span}": 1 for what in ("value", "trades") for span in ("1h", "24h", "7d")}
    moved = {"price_now": 500_000, "price_baseline": 490_000, "price_move": CENT, "computed_at": now}
    insert(conn, "market_activity", {"market_key": key["market_key"], **activity, **moved})
    (rank,) = conn.execute("select count(*) + 1 from market_rankings").fetchone()
    insert(conn, "market_rankings", {"generation": 1, "rank": rank, "market_key": key["market_key"]})
    ticks = {"ts": ago, "before": CENT // 10, "tick_size": CENT}
    insert(conn, "tick_sizes", {**key, **ticks})
    signal = {"type": "momentum", "value": 0.2, "threshold": 0.1, "score": 2.0, "direction": 1, "window_s": 3900}
    counted = {"listed": 5, "held": 5, "added": 1, "unlisted": 0}
    insert(conn, "coverage_market_days", {"day": now.date(), "market_key": key["market_key"], **counted})
    insert(conn, "signals", {**key, "ts": ago, "signal_id": next(_numbers), **signal, "detail": {"from": 0.4}})
    return key["market_key"]


def add_shared_rows(conn):
    """Add the rows that exist once: tokens and contracts of the chain, boards, the stream, figures of the feed."""
    now, ago = instants()
    insert(conn, "chain_contracts", {"address": CONTRACT, "name": "CTF Exchange V2"})
    insert(conn, "chain_tokens", {"token_id": "1001"})
    insert(conn, "chain_ranges", {"from_block": 1000, "to_block": 9999, "logs": 100})
    insert(conn, "chain_checks", {"from_block": 1000, "to_block": 9000})
    for form in ("csv", "parquet"):
        file = {"topic": "trades", "day": now.date(), "part": 0, "format": form, "file": f"trades/{now.date()}/{form}"}
        size = {"rows": 5, "bytes": 100, "sha256": bytes(32), "complete": True, "created_at": now}
        insert(conn, "exports", {**file, **size})
    for span, rank in itertools.product(("1d", "all"), (1, 2)):
        board = {"span": span, "by": "volume", "rank": rank, "wallet": bytes([rank]) * 20, "volume_usd": 10 - rank}
        insert(conn, "leaderboards", {**board, "trades": 1, "markets": 0, "computed_at": now})
    for seq in range(1, 3001, 100):
        stream_rows.add(conn, seq, [stream.message("price", 0, None, {})] * 100)
    conn.execute("update stream_head set last_seq = 3000")
    day = {"day": now.date(), "kind": "trades", "listed": 5, "held": 5, "added": 1, "unlisted": 0, "unknown": 0}
    insert(conn, "coverage_days", {**day, "agrees": True})
    account = insert(conn, "accounts", {"email": "hooks@example.com", "app_name": "tests"})
    hook = {"account_id": account["account_id"], "url": "https://example.com/", "secret": "whsec_", "since_seq": 0}
    hook = insert(conn, "webhooks", {**hook, "events": ["trade"]})
    for nth in range(7):
        sent = {"webhook_id": hook["webhook_id"], "type": f"test {nth}", "body": "{}", "state": "delivered"}
        insert(conn, "webhook_deliveries", {**sent, "attempts": 1, "created_at": ago, "ended_at": now})
    stats = {"ts": ago, "feed": "polymarket", "run_id": "r", "messages": 1, "rows": 1, "lag_counts": [1]}
    insert(conn, "feed_stats", {**stats, "lag_p50_ms": 1, "lag_p99_ms": 2, "lag_max_ms": 3})
    gap = {"kind": "books", "from_ts": ago, "to_ts": now, "cause": "socket", "filled_at": now, "filled_by": "standby"}
    insert(conn, "coverage_gaps", gap)


def healthy_block(conn):
    """Add a block with a match, an entry and derived rows, and the block before; return its number."""
    _, ago = instants()
    number = next(_blocks)
    parent, ts = secrets.token_bytes(32), ago - timedelta(seconds=100_000 - number)
    insert(conn, "chain_blocks", {"number": number - 1, "hash": parent, "ts": ts - timedelta(seconds=2), "logs": 0})
    block = {"number": number, "hash": secrets.token_bytes(32), "parent": parent, "ts": ts, "logs": 10}
    insert(conn, "chain_blocks", block)
    wallet = secrets.token_bytes(20)
    at = {"block_number": number, "ts": ts}
    fill = {"token_key": 1, "price": 500_000, "size": 10_000_000, "value_usd": 5_000_000, "fee_usd": 0}
    for log_index, owner, side, of_taker in ((1, wallet, -1, False), (2, OTHER, 1, True)):
        where = {**at, "log_index": log_index, "side": side}
        named = {"match_index": 2, "tx_hash": secrets.token_bytes(32), "contract_key": 1, "maker": owner}
        whose = {"taker": CONTRACT if of_taker else OTHER, "is_taker_order": of_taker, "counted": of_taker}
        insert(conn, "settlements", {**where, **fill, **named, **whose})
        insert(conn, "wallet_fills", {**where, **fill, "wallet": owner, "is_taker": of_taker})
    entry = {**at, "entry": 0, "wallet": wallet, "amount": 5, "tx_hash": secrets.token_bytes(32), "contract_key": 1}
    condition = {"condition_id": secrets.token_bytes(32)}
    insert(conn, "ledger_entries", {**entry, **condition, "log_index": 3, "kind": "split"})
    sent = {"kind": "transfer", "token_key": 1, "counterparty": OTHER, "amount": -5}
    insert(conn, "ledger_entries", {**entry, **sent, "log_index": 4})
    paid = {"kind": "resolution", "wallet": None, "detail": {"numerators": [1, 0]}}
    insert(conn, "ledger_entries", {**entry, **condition, **paid, "log_index": 5})
    change = {
        **at,
        "wallet": wallet,
        "log_index": 3,
        "entry": 0,
        "token_key": 1,
        "kind": "split",
        "shares": 5,
        "usd": 2,
    }
    insert(conn, "position_changes", change)
    traded = {"buys": 1, "bought": 10, "bought_usd": 5, "sells": 0, "sold": 0, "sold_usd": 0, "held": 10, "covered": 10}
    known = {"cost_usd": 5, "realized_usd": 0, "left_out": 0, "first_trade": ts, "last_trade": ts}
    insert(conn, "wallet_positions", {"base": False, "wallet": wallet, "token_key": 1, **traded, **known})
    return number


_blocks = itertools.count(1010, 10)
