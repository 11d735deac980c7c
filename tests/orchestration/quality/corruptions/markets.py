"""Corrupted rows of markets: trades, the feed's tables, the catalogue, and what is computed from them."""

from __future__ import annotations

from tests.orchestration.quality.corruptions.spoiling import AHEAD, SEQ, Corruption, change, trade

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
        f"select max(ts), %(key)s, 0, -nth * 100000 - %(key)s, {SEQ} + nth, 1, 900000, 1000000, 900000 "
        "from book_events, generate_series(1, 60) as nth where market_key = %(key)s group by nth",
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
    "a market's day that holds more than there was": Corruption(
        change("coverage_market_days", "held = 9"), {"coverage_market_days.held"}
    ),
    "a market's day of fewer than no trades": Corruption(
        change("coverage_market_days", "unlisted = -1"), {"coverage_market_days.counts"}
    ),
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
