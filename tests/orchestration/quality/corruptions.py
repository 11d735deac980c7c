"""Every way of spoiling a row that the suites name: what is done to it, and which checks must say so.

A statement spoils a market (`%(key)s`) or a block (`%(block)s`) that was whole; where it is about something else, that
is named.
"""

from __future__ import annotations

from typing import NamedTuple

SEQ = "(as_ms(now()) << 20)"


class Corruption(NamedTuple):
    """What is done, and which checks catch it."""

    does: str
    caught_by: set[str]
    of: str = "market"


def trade(columns: str, values: str) -> str:
    """Insert a trade that is whole but for these columns."""
    whole = {
        "ts": "coalesce((select max(ts) from trades where market_key = %(key)s::int), now() - interval '80 seconds')",
        "market_key": "%(key)s",
        "outcome": "0",
        "trade_id": "-%(key)s",
        "seq": SEQ,
        "side": "1",
        "price": "500000",
        "size": "10000000",
        "value_usd": "5000000",
    }
    whole |= dict(zip(columns.split(), values.split("|"), strict=True))
    return f"insert into trades ({', '.join(whole)}) values ({', '.join(whole.values())})"


def change(table: str, what: str, where: str = "true") -> str:
    """Change a market's row."""
    return f"update {table} set {what} where market_key = %(key)s and {where}"


def of_block(table: str, what: str, where: str = "true") -> str:
    """Change a row of a block."""
    number = "number" if table == "chain_blocks" else "block_number"
    return f"update {table} set {what} where {number} = %(block)s and {where}"


def delivery(nth: int, what: str) -> str:
    """Change a delivery."""
    return f"update webhook_deliveries set {what} where type = 'test {nth}'"


AHEAD = "now() + interval '1 day'"
LEVEL = "side is not null"
BOOK = "side is null"

TRADES = {
    "a price of 1.2": Corruption(
        trade("price value_usd", "1200000|12000000"),
        {"trades.price", "trades.within_book", "candles_1m.high", "candles_1h.high"},
    ),
    "a price of 0": Corruption(
        trade("price value_usd", "0|0"), {"trades.price", "trades.within_book", "candles_1m.low", "candles_1h.low"}
    ),
    "a negative size": Corruption(trade("size value_usd", "-10|-5"), {"trades.size"}),
    "no size": Corruption(trade("size value_usd", "0|0"), {"trades.size"}),
    "a size beyond all shares": Corruption(
        trade("size value_usd", "2000000000000000|1000000000000000"),
        {"trades.size", "candles_1m.volume", "candles_1h.volume"},
    ),
    "neither bought nor sold": Corruption(trade("side", "0"), {"trades.side"}),
    "a worth that is not price times size": Corruption(
        trade("value_usd", "5000002"), {"trades.worth", "candles_1m.worth", "candles_1h.worth"}
    ),
    "half a transaction hash": Corruption(trade("tx_hash", r"'\x1234'"), {"trades.tx_hash"}),
    "a trade of an outcome that is none": Corruption(
        trade("outcome", "7"), {"trades.market", "candles_1m.market", "candles_1h.market"}
    ),
    "a trade of tomorrow": Corruption(
        trade("ts seq", f"{AHEAD}|(as_ms({AHEAD}) << 20)"),
        {"trades.not_ahead", "candles_1m.not_ahead", "candles_1h.not_ahead"},
    ),
    "a place before its time": Corruption(trade("seq", "(as_ms(now() - interval '1 hour') << 20)"), {"trades.order"}),
    "a trade told twice": Corruption(
        "insert into trades select ts + interval '400 milliseconds', market_key, outcome, trade_id, seq, side, price, "
        f"size, value_usd, tx_hash from trades where market_key = %(key)s limit 1; {change('trades', f'seq = {SEQ}')}",
        {"trades.once"},
    ),
    "trades far from the book": Corruption(
        "insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd) "
        f"select now() - interval '70 seconds', %(key)s, 0, -nth * 100000 - %(key)s, {SEQ} + nth, 1, 900000, 1000000, "
        "900000 from generate_series(1, 60) as nth",
        {"trades.within_book"},
    ),
}

FEED = {
    "a bid of 1.5": Corruption(
        change("quotes", "bid = 1500000, ask = null, mid = null", "outcome = 0"), {"quotes.bid"}
    ),
    "an ask of 0": Corruption(change("quotes", "ask = 0, bid = null, mid = null", "outcome = 0"), {"quotes.ask"}),
    "a crossed quote": Corruption(
        change("quotes", "bid = 520000, ask = 510000, mid = 515000", "outcome = 0"), {"quotes.not_crossed"}
    ),
    "a locked quote": Corruption(
        change("quotes", "bid = 510000, ask = 510000, mid = 510000", "outcome = 0"), {"quotes.not_crossed"}
    ),
    "a middle beside the middle": Corruption(change("quotes", "mid = mid + 1", "outcome = 0"), {"quotes.mid"}),
    "a middle of one price": Corruption(change("quotes", "ask = null", "outcome = 0"), {"quotes.mid"}),
    "nothing at the best bid": Corruption(change("quotes", "bid_size = 0", "outcome = 0"), {"quotes.sizes"}),
    "a quote of tomorrow": Corruption(
        f"insert into quotes (ts, market_key, outcome) values ({AHEAD}, %(key)s, 0)", {"quotes.not_ahead"}
    ),
    "a quote of an outcome that is none": Corruption(change("quotes", "outcome = 5", "outcome = 0"), {"quotes.market"}),
    "a level at 1.2": Corruption(change("book_events", "price = 1200000", LEVEL), {"book_events.price"}),
    "a level below 0": Corruption(change("book_events", "price = -1", LEVEL), {"book_events.price"}),
    "a level of fewer than no shares": Corruption(change("book_events", "size = -1", LEVEL), {"book_events.size"}),
    "a level on no side": Corruption(change("book_events", "side = 2", LEVEL), {"book_events.side"}),
    "a change without a price": Corruption(change("book_events", "price = null", LEVEL), {"book_events.shape"}),
    "a change that is a book too": Corruption(change("book_events", "bid_prices = '{}'", LEVEL), {"book_events.shape"}),
    "half a book": Corruption(change("book_events", "ask_sizes = null", BOOK), {"book_events.shape"}),
    "a crossed book": Corruption(change("book_events", "ask_prices = '{480000}'", BOOK), {"book_events.not_crossed"}),
    "levels out of order": Corruption(
        change("book_events", "bid_prices = '{480000, 490000}'", BOOK), {"book_events.levels"}
    ),
    "more prices than sizes": Corruption(
        change("book_events", "bid_prices = '{490000, 480000, 470000}'", BOOK), {"book_events.levels"}
    ),
    "a change of tomorrow": Corruption(
        "insert into book_events (ts, market_key, outcome, event_id, seq, side, price, size) "
        f"values ({AHEAD}, %(key)s, 0, 1, (as_ms({AHEAD}) << 20), 1, 490000, 10)",
        {"book_events.not_ahead"},
    ),
    "a change placed before its time": Corruption(change("book_events", "seq = 5", LEVEL), {"book_events.order"}),
    "a change told twice": Corruption(
        "insert into book_events select ts, market_key, outcome, -event_id, seq, side, price, size from book_events "
        f"where market_key = %(key)s and {LEVEL}",
        {"book_events.once"},
    ),
    "a change of an outcome that is none": Corruption(
        change("book_events", "outcome = -1", LEVEL), {"book_events.market"}
    ),
    "a live price of 2": Corruption(change("live_prices", "last = 2000000", "outcome = 0"), {"live_prices.last"}),
    "a crossed live price": Corruption(
        change("live_prices", "bid = 520000, ask = 500000, mid = 510000", "outcome = 0"), {"live_prices.not_crossed"}
    ),
    "a live price of tomorrow": Corruption(
        change("live_prices", f"ts = {AHEAD}", "outcome = 0"), {"live_prices.not_ahead"}
    ),
    "a live price with another middle": Corruption(
        change("live_prices", "mid = 490000", "outcome = 0"), {"live_prices.mid"}
    ),
    "a crossed live book": Corruption(change("live_books", "ask_prices = '{490000}'"), {"live_books.not_crossed"}),
    "a level that stands twice": Corruption(
        change("live_books", "bid_prices = '{490000, 490000}'"), {"live_books.levels"}
    ),
    "an empty level": Corruption(change("live_books", "ask_sizes = '{0}'"), {"live_books.levels"}),
    "a crossed book kept": Corruption(change("book_anchors", "ask_prices = '{490000}'"), {"book_anchors.not_crossed"}),
    "a level of 1 kept": Corruption(change("book_anchors", "ask_prices = '{1000000}'"), {"book_anchors.levels"}),
}

CATALOGUE = {
    "a name that is no condition": Corruption(change("markets", "market_id = '0xZZ'"), {"markets.market_id"}),
    "a state that is none": Corruption(change("markets", "status = 'PAUSED'"), {"markets.status"}),
    "more outcomes than tokens": Corruption(change("markets", "outcomes = '{Yes, No, Perhaps}'"), {"markets.outcomes"}),
    "tokens the wrong way round": Corruption(
        change("markets", "token_ids = array[token_ids[2], token_ids[1]]"), {"markets.tokens"}
    ),
    "a token that nobody knows": Corruption(
        change("markets", "token_ids = array['7' || %(key)s::text, token_ids[2]]"), {"markets.tokens"}
    ),
    "prices that add up to 1.4": Corruption(
        change("markets", "outcome_prices = '{700000, 700000}'"), {"markets.outcome_prices"}
    ),
    "a winner while it is open": Corruption(change("markets", "winning_outcome = 0"), {"markets.winner"}),
    "a winner that is not paid": Corruption(
        change("markets", "status = 'RESOLVED', winning_outcome = 0, outcome_prices = '{0, 1000000}'"),
        {"markets.winner"},
    ),
    "a negative volume": Corruption(change("markets", "volume_usd = -1"), {"markets.volume_usd"}),
    "less than nothing in a day": Corruption(change("markets", "volume_24h_usd = -1"), {"markets.volume_24h_usd"}),
    "less than nothing to trade with": Corruption(change("markets", "liquidity_usd = -1"), {"markets.liquidity_usd"}),
    "a change from no state": Corruption(
        change("market_status_changes", "from_status = 'GONE'"), {"market_status_changes.from_status"}
    ),
    "a change without a cause": Corruption(
        change("market_status_changes", "cause = ''"), {"market_status_changes.cause"}
    ),
    "a tick of two": Corruption(change("markets", "tick_size = 2000000"), {"markets.tick_size"}),
    "an event that nobody knows": Corruption(change("markets", "event_id = 'nowhere'"), {"markets.event"}),
    "changed tomorrow": Corruption(change("markets", f"updated_at = {AHEAD}"), {"markets.not_ahead"}),
    "a change to no state": Corruption(
        change("market_status_changes", "to_status = 'GONE'"), {"market_status_changes.to_status"}
    ),
    "a change to the same state": Corruption(
        change("market_status_changes", "from_status = to_status"), {"market_status_changes.changed"}
    ),
    "an event with an empty tag": Corruption(
        "update events set tags = array[''] where event_id = (select event_id from markets where market_key = %(key)s) "
        "returning event_id",
        {"events.tags"},
        "event",
    ),
}

COMPUTED = {
    "a tick of nothing": Corruption(change("tick_sizes", "tick_size = 0"), {"tick_sizes.tick_size"}),
    "a tick that did not change": Corruption(change("tick_sizes", "before = tick_size"), {"tick_sizes.changed"}),
    "a high below the low": Corruption(
        change("candles_1m", "high = low - 1"),
        {"candles_1m.range", "candles_1m.of_trades", "candles_1h.of_minutes", "candles_1m.worth"},
    ),
    "a volume that nobody traded": Corruption(
        change("candles_1m", "volume = volume + 1"), {"candles_1m.of_trades", "candles_1h.of_minutes"}
    ),
    "a minute that is gone": Corruption(
        "delete from candles_1m where market_key = %(key)s", {"candles_1m.none_missing"}
    ),
    "an hour unlike its minutes": Corruption(change("candles_1h", "trades = trades + 1"), {"candles_1h.of_minutes"}),
    "an hour that opens outside": Corruption(
        change("candles_1h", "open = 900000"), {"candles_1h.range", "candles_1h.of_minutes"}
    ),
    "a minute that begins late": Corruption(
        change("candles_1m", "bucket = bucket + interval '1 microsecond'"),
        {"candles_1m.aligned", "candles_1m.none_missing"},
    ),
    "no trades in a candle": Corruption(
        change("candles_1m", "trades = 0"), {"candles_1m.trades", "candles_1m.of_trades", "candles_1h.of_minutes"}
    ),
    "the last trade before the first": Corruption(
        change("candles_1m", "first_seq = last_seq + 1"), {"candles_1m.places", "candles_1m.of_trades"}
    ),
    "24 hours that are 23": Corruption(
        change("market_stats_24h", "window_start = window_start + interval '1 hour'"), {"market_stats_24h.window"}
    ),
    "a day's close above its high": Corruption(
        change("market_stats_24h", "close = 600000"), {"market_stats_24h.range"}
    ),
    "an hour with more than its day": Corruption(
        change("market_activity", "value_1h = 2"), {"market_activity.periods"}
    ),
    "a price now of 2": Corruption(
        change("market_activity", "price_now = 2000000, price_move = 2000000 - price_baseline"),
        {"market_activity.price_now"},
    ),
    "a price before of 2": Corruption(
        change("market_activity", "price_baseline = 2000000, price_move = price_now - 2000000"),
        {"market_activity.price_baseline"},
    ),
    "a direction that is none": Corruption(change("signals", "direction = 0"), {"signals.direction"}),
    "a window below nothing": Corruption(change("signals", "window_s = -1"), {"signals.window_s"}),
    "a move that is none": Corruption(change("market_activity", "price_move = 0"), {"market_activity.move"}),
    "a score that is not value over threshold": Corruption(change("signals", "score = 3"), {"signals.score"}),
    "a signal below its threshold": Corruption(change("signals", "value = 0.05, score = 0.5"), {"signals.score"}),
    "a signal of no kind": Corruption(change("signals", "type = 'hunch'"), {"signals.type"}),
    "a signal of tomorrow": Corruption(
        "insert into signals (ts, market_key, outcome, signal_id, type, value, threshold, score, window_s, detail) "
        f"values ({AHEAD}, %(key)s, 0, -%(key)s, 'momentum', 2, 1, 2, 60, jsonb_build_object('from', 1))",
        {"signals.not_ahead", "signals.found"},
    ),
    "a signal with nothing behind it": Corruption(change("signals", "detail = '{}'"), {"signals.detail"}),
}

_ANY = "log_index = 1"
CHAIN = {
    "half a block hash": Corruption(of_block("chain_blocks", r"hash = '\x12'"), {"chain_blocks.hash"}, "block"),
    "a block with another parent": Corruption(
        of_block("chain_blocks", "parent = sha256('other')"), {"chain_blocks.linked"}, "block"
    ),
    "a block older than its parent": Corruption(
        "update chain_blocks set ts = ts + interval '4 seconds' where number = %(block)s - 1",
        {"chain_blocks.later"},
        "block",
    ),
    "a block with more fills than logs": Corruption(
        of_block("chain_blocks", "logs = 1"), {"chain_blocks.whole"}, "block"
    ),
    "a settlement of fewer than no shares": Corruption(
        f"{of_block('settlements', 'size = -5, price = null', _ANY)}; "
        f"{of_block('wallet_fills', 'size = -5, price = null', _ANY)}",
        {"settlements.size", "wallet_fills.size"},
        "block",
    ),
    "a settlement at 1.3": Corruption(
        of_block("settlements", "price = 1300000, value_usd = 13000000", _ANY),
        {"settlements.price", "settlements.history"},
        "block",
    ),
    "a settlement with another price": Corruption(
        of_block("settlements", "price = 600000", _ANY), {"settlements.worth"}, "block"
    ),
    "a settlement at another time than its block": Corruption(
        of_block("settlements", "ts = ts + interval '1 second'", _ANY),
        {"settlements.block", "settlements.history", "wallet_fills.settlement"},
        "block",
    ),
    "a settlement of a contract that nobody follows": Corruption(
        of_block("settlements", "contract_key = 99", _ANY), {"settlements.contract"}, "block"
    ),
    "a settlement of a token without a name": Corruption(
        of_block("settlements", "token_key = 99", _ANY), {"settlements.token", "settlements.history"}, "block"
    ),
    "a match counted twice": Corruption(
        of_block("settlements", "counted = true", _ANY), {"settlements.counted"}, "block"
    ),
    "a match without its taker": Corruption(
        of_block("settlements", "match_index = 7", _ANY), {"settlements.match"}, "block"
    ),
    "a maker that is no address": Corruption(
        of_block("settlements", r"maker = '\x12'", _ANY),
        {"settlements.maker", "settlements.history", "wallet_fills.settlement"},
        "block",
    ),
    "a fill that is in no history": Corruption(
        f"delete from wallet_fills where block_number = %(block)s and {_ANY}", {"settlements.history"}, "block"
    ),
    "a history without a fill": Corruption(
        "insert into wallet_fills select wallet, ts, block_number, 99, is_taker, token_key, side, price, size, "
        f"value_usd, fee_usd from wallet_fills where block_number = %(block)s and {_ANY}",
        {"wallet_fills.settlement"},
        "block",
    ),
    "an entry of no kind": Corruption(
        of_block("ledger_entries", "kind = 'burn'", "log_index = 3"),
        {"ledger_entries.kind", "position_changes.entry"},
        "block",
    ),
    "a split of fewer than no shares": Corruption(
        of_block("ledger_entries", "amount = -5", "log_index = 3"), {"ledger_entries.amount"}, "block"
    ),
    "a transfer of nothing": Corruption(
        of_block("ledger_entries", "token_key = null", "log_index = 4"), {"ledger_entries.subject"}, "block"
    ),
    "a resolution that pays nobody": Corruption(
        of_block("ledger_entries", "detail = '{}'", "log_index = 5"), {"ledger_entries.payout"}, "block"
    ),
    "a change of nothing": Corruption(of_block("position_changes", "shares = 0"), {"position_changes.shares"}, "block"),
    "a change without an entry": Corruption(
        of_block("position_changes", "log_index = 9"), {"position_changes.entry"}, "block"
    ),
    "a position with more known than held": Corruption(
        "update wallet_positions set covered = 11 where wallet = (select wallet from wallet_fills where "
        "block_number = %(block)s and log_index = 1) returning encode(wallet, 'hex')",
        {"wallet_positions.covered"},
        "wallet",
    ),
    "a position that cost less than nothing": Corruption(
        "update wallet_positions set cost_usd = -1 where wallet = (select wallet from wallet_fills where "
        "block_number = %(block)s and log_index = 1) returning encode(wallet, 'hex')",
        {"wallet_positions.cost"},
        "wallet",
    ),
}

_TRADED = "wallet = (select wallet from wallet_fills where block_number = %(block)s and log_index = 1)"
CHAIN |= {
    "counts below nothing": Corruption(
        "update wallet_positions set buys = -1, bought = -1, bought_usd = -1, sells = -1, sold = -1, sold_usd = -1 "
        f"where {_TRADED} returning encode(wallet, 'hex')",
        {f"wallet_positions.{name}" for name in ("buys", "bought", "bought_usd", "sells", "sold", "sold_usd")},
        "wallet",
    ),
    "a last trade before the first": Corruption(
        f"update wallet_positions set last_trade = first_trade - interval '1 day' where {_TRADED} "
        "returning encode(wallet, 'hex')",
        {"wallet_positions.times"},
        "wallet",
    ),
    "an entry by half a wallet": Corruption(
        of_block("ledger_entries", r"wallet = '\x12'", "log_index = 3"), {"ledger_entries.wallet"}, "block"
    ),
    "a fee below nothing": Corruption(of_block("settlements", "fee_usd = -1", _ANY), {"settlements.fee_usd"}, "block"),
    "a value below nothing": Corruption(
        of_block("settlements", "value_usd = -1, price = null", _ANY),
        {"settlements.value_usd", "settlements.history"},
        "block",
    ),
    "a taker that is no address": Corruption(
        of_block("settlements", r"taker = '\x12'", _ANY), {"settlements.taker"}, "block"
    ),
    "what nobody watches": Corruption(
        "insert into wallet_activity (wallet, ts, block_number, log_index, is_taker, tx_hash, contract_key, token_key, "
        "counterparty, side, price, size, value_usd, fee_usd) select wallet, ts, block_number, log_index, is_taker, "
        "wallet, 1, token_key, wallet, side, price, size, value_usd, fee_usd from wallet_fills "
        "where block_number = %(block)s",
        {"wallet_activity.watched"},
        "block",
    ),
}

# About rows that belong to no market and no block: the check is enough to know it by.
OTHERS = {
    "a trade of a market that nobody knows": Corruption(
        trade("market_key trade_id", "999999|999999"),
        {"trades.market", "candles_1m.market", "candles_1h.market"},
        "999999",
    ),
    "a quote of a market that nobody knows": Corruption(
        "insert into quotes (ts, market_key, outcome) values (now(), 999998, 0)", {"quotes.market"}, "999998"
    ),
    "a book of a market that nobody knows": Corruption(
        "insert into live_books (market_key, outcome, bid_prices, bid_sizes, ask_prices, ask_sizes, seq, ts, verified) "
        "values (999997, 0, '{}', '{}', '{}', '{}', 1, now(), true)",
        {"live_books.market"},
        "999997",
    ),
    "a settlement of a block that is not there": Corruption(
        "insert into settlements select ts, (select max(number) from chain_blocks) + 5, log_index, match_index, "
        "tx_hash, contract_key, token_key, maker, taker, side, price, size, value_usd, fee_usd, is_taker_order, "
        "counted from settlements where match_index = log_index order by ts desc limit 1",
        {"settlements.block", "settlements.history"},
        "orphan",
    ),
    "a block that was never indexed": Corruption(
        "insert into chain_blocks (number, hash, ts, logs) values (10001, sha256('x'), now(), 0)",
        {"chain_blocks.indexed"},
        "10001",
    ),
    "numbers of the stream that are missing": Corruption(
        "delete from stream_events where seq between 1201 and 1203", {"stream_events.no_gap"}, "1000"
    ),
    "a message with another number": Corruption(
        "update stream_events set message = replace(message, '2100', '2101') where seq = 2100",
        {"stream_events.message"},
        "2100",
    ),
    "a message of a market that nobody knows": Corruption(
        "update stream_events set market_id = '0xff' where seq = 2200", {"stream_events.market"}, "2200"
    ),
    "a median above the 99th percentile": Corruption(
        "update feed_stats set lag_p50_ms = 9", {"feed_stats.lags"}, "polymarket"
    ),
    "a gap that ends before it begins": Corruption(
        "insert into coverage_gaps (kind, from_ts, to_ts, cause) "
        "values ('books', now(), now() - interval '1 minute', 'backwards')",
        {"coverage_gaps.span"},
        "backwards",
    ),
    "a gap that is filled and still open": Corruption(
        "insert into coverage_gaps (kind, from_ts, filled_at, cause) values ('books', now(), now(), 'open')",
        {"coverage_gaps.filled"},
        "open",
    ),
    "a place on a board that is missing": Corruption(
        "update leaderboards set rank = 3 where span = '1d' and rank = 2", {"leaderboards.ranked"}, "1d"
    ),
    "a place behind somebody who has less": Corruption(
        "update leaderboards set volume_usd = 99 where span = 'all' and rank = 2", {"leaderboards.ranked"}, "all"
    ),
    "a board that nobody asks for": Corruption(
        "insert into leaderboards (span, by, rank, wallet, volume_usd, trades, markets, computed_at) "
        r"values ('2d', 'luck', 1, '\x12', -1, 0, 0, now())",
        {"leaderboards.span", "leaderboards.by", "leaderboards.wallet", "leaderboards.volume_usd"},
        "2d",
    ),
    "a wallet twice on a board": Corruption(
        "insert into leaderboards select '30d', by, n, wallet, volume_usd, trades, markets, pnl_usd, window_start, "
        "computed_at from leaderboards, generate_series(1, 2) as n where span = 'all' and rank = 1",
        {"leaderboards.once"},
        "30d",
    ),
    "a gap without a cause": Corruption(
        "insert into coverage_gaps (kind, from_ts, cause) values ('quiet', now(), '')", {"coverage_gaps.cause"}, "quiet"
    ),
    "fewer messages than none": Corruption(
        "insert into feed_stats (ts, feed, run_id, messages, rows, lag_counts) "
        "values (now(), 'below', 'r', -1, -1, array[1])",
        {"feed_stats.messages", "feed_stats.rows"},
        "below",
    ),
    "a day that holds more than there was": Corruption(
        "update coverage_days set held = 9, unlisted = -1",
        {"coverage_days.counts", "coverage_days.held", "coverage_days.agrees"},
        "trades",
    ),
    "a delivery in no state": Corruption(delivery(0, "state = 'lost'"), {"webhook_deliveries.state"}, "test 0"),
    "a delivery that waits and has ended": Corruption(
        delivery(1, "state = 'waiting', next_at = now()"), {"webhook_deliveries.ended"}, "test 1"
    ),
    "a delivery that ended before it was made": Corruption(
        delivery(2, "created_at = ended_at + interval '1 second'"), {"webhook_deliveries.times"}, "test 2"
    ),
    "a delivery of nothing": Corruption(delivery(3, "body = ''"), {"webhook_deliveries.body"}, "test 3"),
    "a delivery tried without end": Corruption(
        delivery(4, "attempts = 101"), {"webhook_deliveries.attempts"}, "test 4"
    ),
    "a delivery that arrived without being sent": Corruption(
        delivery(5, "attempts = 0"), {"webhook_deliveries.attempted"}, "test 5"
    ),
    "a delivery of tomorrow": Corruption(
        delivery(6, f"created_at = {AHEAD}, ended_at = {AHEAD}"), {"webhook_deliveries.not_ahead"}, "test 6"
    ),
    "an event without a name": Corruption("insert into events (event_id) values ('')", {"events.event_id"}, "nameless"),
    "a rank that is missing": Corruption(
        "update market_rankings set rank = rank + 1 where rank = (select max(rank) from market_rankings)",
        {"market_rankings.ranked"},
        "rank",
    ),
    "prices of Yes and No that are no complements": Corruption(
        "update live_prices set bid = 690000, ask = 710000, mid = 700000 where outcome = 0 and market_key in ("
        "select market_key from markets where slug like 'pair-%%')",
        {"live_prices.complementary"},
        "pairs",
    ),
}
