"""Valid inputs of each target: recorded answers of the exchange, cut short, and requests as clients send them."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from api.stream import frames
from tests.upstream import recordings
from tests.upstream.kalshi import samples

if TYPE_CHECKING:
    import random
    from pathlib import Path

NOW_S = 1_795_000_000.0
MARKET = "0x" + "ab" * 32
TOKENS = ["11", "22"]
WALLET = "0x" + "cd" * 20
TS = str(int(NOW_S * 1000))
LEVELS = {"bids": [{"price": "0.40", "size": "10"}], "asks": [{"price": "0.60", "size": "12.5"}]}
ROWS = 3  # of each recording
MUTATIONS = 6  # of a byte, or of a piece, in one variant
PIECES = (
    b"null",
    b"-1",
    b"1e309",
    b"9" * 30,
    b'""',
    b"[]",
    b"{}",
    b"\\ud800",
    b"\xff",
    b"\0",
    b'"',
    b"NaN",
    b"0x",
    b"[" * 2000,
)

KALSHI_MARKET = samples.TICKER
KALSHI_EVENT = "KXFED-27APR"
KALSHI_LISTED = json.dumps(
    {"series": [samples.SERIES], "events": [samples.EVENT], "markets": [samples.MARKET]}
).encode()
KALSHI_ANCHORED = (samples.frame(samples.SUBSCRIBED), samples.frame(samples.SNAPSHOT))

QUESTION = {
    "conditionId": MARKET,
    "question": "Will Ada Byron be the Republican nominee for FL-19?",
    "description": "This market will resolve according to the candidate who wins the nomination for the "
    "Republican Party to contest the FL-19 congressional district seat in the U.S. House of Representatives in the "
    "2026 midterm elections. If no nominee is announced by November 3, 2026, 11:59 PM ET, this market will resolve "
    "to “Other”.",
    "outcomes": '["Yes", "No"]',
    "endDate": "2026-08-18T00:00:00Z",
}
CONTRACT = {
    "ticker": "KXHIGH-26JUN13-B89.5",
    "title": "Will the high be 89-90°?",
    "rules_primary": "If the highest temperature recorded in Central Park for June 13, 2026 as reported by the "
    "National Weather Service is between 89-90°, then the market resolves to Yes.",
    "rules_secondary": "If no data is available, the market resolves to No.",
    "yes_sub_title": "89° to 90°",
    "strike_type": "between",
    "floor_strike": 89,
    "cap_strike": "90",
}

BOOK = json.dumps(
    [
        {"event_type": "book", "asset_id": token, "market": MARKET, "timestamp": TS, "hash": "a1", **LEVELS}
        for token in TOKENS
    ]
).encode()


def all_seeds(recorded: Path) -> dict[str, list[bytes]]:
    """Return valid inputs by target; `recorded` is the folder of recordings."""
    nautilus = recorded / "fixtures_edited" / "nautilus"
    logs = _objects(recorded / "onchain" / "orderfilled_v2_logs.json")[:ROWS]
    logs += json.loads((recorded / "onchain" / "mixed_event_logs.json").read_bytes()).values()
    clob = {
        name: _objects(recorded / "clob" / f"{name}.json.gz")
        for name in ("books_fed-decision-in-june-825", "markets_page1_raw")
    }
    block = {"number": "0x1", "hash": "0x" + "ab" * 32, "parentHash": "0x" + "cd" * 32, "timestamp": "0x66aa55bb"}
    return {
        "market_frame": [BOOK, *_frames(), *(path.read_bytes() for path in sorted(nautilus.glob("ws/*.json")))],
        "gamma": [
            *(b'{"markets":[%s]}' % market for market in recordings.gamma_markets(recorded)[:: 800 // ROWS]),
            *(_encoded({"events": [event]}) for event in recordings.gamma_events(recorded)[:1]),
        ],
        "clob": [
            _encoded([{**LEVELS, "asset_id": TOKENS[0], "market": MARKET, "timestamp": TS, "hash": "a1"}]),
            _encoded({**LEVELS, "asset_id": TOKENS[0], "market": MARKET, "timestamp": TS, "hash": "a1"}),
            _encoded(clob["books_fed-decision-in-june-825"][:1]),
            _encoded({"data": clob["markets_page1_raw"][:ROWS], "next_cursor": "LTE="}),
            _encoded({"history": [{"t": 1_770_000_000, "p": 0.5}, {"t": 1_770_000_060.5, "p": "0.51"}]}),
        ],
        "equivalents": [json.dumps(each).encode() for each in (QUESTION, CONTRACT)],
        "data_api": [
            *(_encoded(_objects(path)[:ROWS]) for path in sorted((recorded / "data_api").glob("*.json"))),
            _encoded(
                {"data": _objects(recorded / "data_api" / "trades.json")[:ROWS], "pagination": {"has_more": False}}
            ),
        ],
        "kalshi_rest": [
            _encoded({"markets": [samples.MARKET, samples.FINAL, samples.COMBO], "cursor": ""}),
            _encoded({"market": samples.MARKET}),
            _encoded({"events": [samples.EVENT | {"markets": [samples.MARKET]}], "markets": [samples.MARKET]}),
            _encoded({"event": samples.EVENT, "markets": [samples.MARKET]}),
            _encoded({"series": [samples.SERIES]}),
            _encoded({"series": samples.SERIES}),
            _encoded({"orderbook_fp": samples.ORDERBOOK}),
            _encoded({"orderbooks": [{"ticker": KALSHI_MARKET, "orderbook_fp": samples.ORDERBOOK}]}),
            _encoded({"trades": [samples.TRADE], "cursor": "", **samples.CUTOFF}),
            _encoded({"candlesticks": [samples.CANDLE, samples.HISTORICAL_CANDLE]}),
            _encoded({"markets": [{"market_ticker": KALSHI_MARKET, "candlesticks": [samples.CANDLE]}]}),
            *map(_encoded, (samples.STATUS, samples.SCHEDULE, samples.CUTOFF)),
            *map(_encoded, (samples.NESTED_ERROR, samples.FLAT_ERROR, samples.BARE_ERROR, samples.LIMIT_ERROR)),
        ],
        "kalshi_frame": [
            *map(samples.frame, samples.FRAMES),
            samples.frame(samples.DELTA | {"seq": 3}),
        ],
        "kalshi_tape": [
            _capture([{**each, "msg": {**each["msg"], "market_ticker": KALSHI_MARKET}} for each in _played()]),
            _capture(_played()),
            _encoded({"markets": [samples.FINAL, samples.COMBO], "trades": [samples.TRADE]}),
            _encoded(
                {"series": [samples.SERIES | {"ticker": "KXA"}], "events": [samples.EVENT | {"event_ticker": "A"}]}
            ),
            _encoded({"path": f"/markets/{KALSHI_MARKET}/orderbook", "body": {"orderbook_fp": samples.ORDERBOOK}}),
        ],
        "chain_node": [
            _encoded([{"jsonrpc": "2.0", "id": 0, "result": block}, {"jsonrpc": "2.0", "id": 1, "result": block}]),
            _encoded({"jsonrpc": "2.0", "id": 0, "result": block}),
            _encoded(
                {"jsonrpc": "2.0", "id": 0, "error": {"code": -32005, "message": "range too large: try 0x1 to 0x5"}}
            ),
            _encoded({"jsonrpc": "2.0", "id": 0, "result": logs}),
        ],
        "chain_logs": [_encoded(logs), *(_encoded([log]) for log in logs)],
        "webhook_url": [
            b"https://example.org/hook?a=1",
            b"http://[2001:db8::1]:8080/",
            b"https://xn--bcher-kva.example./x",
        ],
        "http_headers": [
            b"Host: a\r\nX-API-Key: k\r\nX-Forwarded-For: 1.2.3.4, ::1\r\nRetry-After: 5\r\nContent-Length: 5\r\n\r\n",
            b"Retry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\nTransfer-Encoding: chunked\r\n\r\n",
        ],
        "websocket_frames": [
            _masked(b'{"action":"ping"}', 0x81),
            _masked(b"a" * 200, 0x01) + _masked(b"b" * 70, 0x89) + _masked("é".encode(), 0x80),
            _masked((1001).to_bytes(2, "big") + b"bye", 0x88),
            _masked(b"c" * 65_536, 0x81),
        ],
        "stream_command": _commands(),
        "replay_request": [
            _encoded({"type": "market", "assets_ids": TOKENS, "custom_feature_enabled": True}),
            _encoded({"operation": "unsubscribe", "assets_ids": TOKENS[:1]}),
            b"PING",
        ],
        "query_parameters": [
            bytes([kind]) + query
            for kind in range(60)
            for query in (
                b"limit=10&cursor=abc&from=2026-11-21T12:00:00Z&to=1795262400000&outcome=all",
                b"market=rain-tomorrow&wallet="
                + WALLET.encode()
                + b"&interval=1h&min_usd=1.5&sort=volume&status=ACTIVE",
            )
        ],
        "request_body": [
            bytes([kind]) + text
            for kind in range(10)
            for text in (
                _encoded({"email": "a@example.org"}),
                _encoded(
                    {"url": "https://example.org/hook", "events": ["trade"], "filters": {"markets": ["rain-tomorrow"]}}
                ),
                _encoded({"token": "abc"}),
            )
        ],
        "cursor": [b"AAAAAAAAAAAAAAAAkwECAw", b"abc=", b"_-_-"],
    }


def mutated(seed: bytes, dice: random.Random) -> bytes:
    """Return the input with a few bytes changed, or pieces of it dropped, repeated or replaced by odd values."""
    data = bytearray(seed)
    for _ in range(dice.randint(1, MUTATIONS)):
        at = dice.randrange(len(data) + 1)
        end = min(len(data), at + dice.choice((0, 1, 1, 4, 16, 200)))
        data[at:end] = dice.choice((b"", bytes([dice.randrange(256)]), dice.choice(PIECES), bytes(data[at:end]) * 2))
    return bytes(data)


def _frames() -> list[bytes]:
    common = {"market": MARKET, "timestamp": TS}
    change = {
        "asset_id": "11",
        "price": "0.41",
        "size": "3",
        "side": "BUY",
        "hash": "b2",
        "best_bid": "0.41",
        "best_ask": "0.6",
    }
    frames_ = (
        {"event_type": "price_change", "price_changes": [change, change | {"asset_id": "22"}]},
        {
            "event_type": "price_change",
            "asset_id": "11",
            "hash": "b2",
            "changes": [{"price": "0.4", "side": "BUY", "size": "0"}],
        },
        {
            "event_type": "last_trade_price",
            "asset_id": "11",
            "price": "0.5",
            "side": "SELL",
            "size": "2",
            "fee_rate_bps": "0",
        },
        {"event_type": "best_bid_ask", "asset_id": "11", "best_bid": "0.4", "best_ask": "0.6"},
        {"event_type": "tick_size_change", "asset_id": "11", "old_tick_size": "0.01", "new_tick_size": "0.001"},
        {
            "event_type": "new_market",
            "id": "1",
            "condition_id": MARKET,
            "assets_ids": TOKENS,
            "outcomes": ["Yes", "No"],
            "tags": ["x"],
        },
        {
            "event_type": "market_resolved",
            "id": "1",
            "assets_ids": TOKENS,
            "winning_asset_id": "11",
            "winning_outcome": "Yes",
        },
    )
    return [_encoded(frame | common) for frame in frames_]


def _played() -> list[dict[str, Any]]:
    return [each for each in samples.FRAMES if isinstance(each.get("msg"), dict)]


def _capture(frames_: list[dict[str, Any]]) -> bytes:
    sent = {"cmd": "subscribe", "params": {"channels": ["orderbook_delta"], "use_yes_price": True}}
    lines: list[dict[str, Any]] = [{"at_ms": int(NOW_S * 1000), "sent": sent}]
    lines += [{"at_ms": int(NOW_S * 1000) + at, "frame": each} for at, each in enumerate(frames_)]
    return b"\n".join(map(_encoded, lines))


def _commands() -> list[bytes]:
    said: tuple[dict[str, Any], ...] = (
        {"action": "subscribe", "markets": ["rain-tomorrow", MARKET], "types": ["trade", "price"], "resume_from": 5},
        {"action": "unsubscribe", "markets": None},
        {"action": "subscribe_wallet", "wallets": [WALLET]},
        {"action": "unsubscribe_wallet", "wallets": None},
        {"action": "ping"},
    )
    return [_encoded(each) for each in said]


def _masked(payload: bytes, first: int) -> bytes:
    head = bytearray(frames.frame(payload))
    size = len(head) - len(payload)
    head[0] = first
    head[1] |= 0x80
    mask = b"\x01\x02\x03\x04"
    return bytes(head[:size]) + mask + frames.unmask(payload, mask)


def _objects(path: Path) -> list[Any]:
    found = json.loads(recordings.text(path))
    if isinstance(found, dict):
        found = next((found[name] for name in ("data", "books", "markets") if name in found), [found])
    return list(itertools.islice(found, 20))


def _encoded(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
