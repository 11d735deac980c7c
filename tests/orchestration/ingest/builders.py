"""Builds messages and rows for the live feed's tests."""

import itertools
import time

from orchestration.ingest.clock import ExchangeClock
from orchestration.ingest.exchanges.polymarket import PolymarketClient
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.storage.rows import Token, TradeRow, value_usd
from upstream.polymarket.market_channel.socket import Book, LastTrade, LevelChange

NOW = int(time.time() * 1000) // 1000 * 1000
UNREACHABLE = PolymarketClient("", "", "ws://127.0.0.1:9/", "")  # nothing listens there
NO_CALLBACKS = dict.fromkeys(("on_messages", "on_opened", "on_lost", "on_missed"), lambda *_: 0)
_numbers = itertools.count(1)


def token(market_key=1, outcome=0, token_id=None):
    return Token(token_id or f"{market_key}000{outcome}", f"0x{market_key:064x}", market_key, outcome)


def trades(count, *tokens, ts_ms=NOW):
    """Return trade rows with distinct ids."""
    tokens = tokens or (token(),)
    rows = []
    for nth in range(count):
        number = next(_numbers)
        of, price, size = tokens[nth % len(tokens)], 10_000 * (1 + number % 98), 1_000_000 + number
        rows.append(
            TradeRow(of, ts_ms + nth, number, (ts_ms + nth) << 20, 1, price, size, value_usd(price, size), bytes(32))
        )
    return rows


def book(of, bids, asks, ts_ms=NOW, hash_=""):
    return Book(of.token_id, of.market_id, ts_ms, hash_, list(bids), list(asks), 10_000)


def change(of, side, price, size, best_bid=None, best_ask=None, ts_ms=NOW, hash_=""):
    return LevelChange(of.token_id, of.market_id, ts_ms, hash_, side, price, size, best_bid, best_ask)


def trade(of, price=500_000, size=1_000_000, ts_ms=NOW, side=1, tx_hash=None):
    return LastTrade(of.token_id, of.market_id, ts_ms, side, price, size, tx_hash)


def make_normalizer(*tokens, clock=lambda: NOW / 1000 + 1):
    made = Normalizer(clock, exchange=ExchangeClock(clock))
    for each in tokens:
        made.follow(each)
    return made


def save(losses, conn, now_ms=NOW, **how):
    """Write losses, as a run's session does from time to time."""
    losses.write(conn, losses.begin_saving(now_ms, **how))
    losses.end_saving()
