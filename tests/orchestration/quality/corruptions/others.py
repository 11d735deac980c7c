"""Corrupted rows of blocks, and rows that belong to no market and no block."""

from __future__ import annotations

from msgspec.structs import replace

from tests import stream_rows
from tests.orchestration.quality.corruptions.spoiling import AHEAD, Corruption, delivery, of_block, trade

_ANY = "log_index = 1"
_TRADED = "wallet = (select wallet from wallet_fills where block_number = %(block)s and log_index = 1)"
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
        f"update wallet_positions set covered = 11 where {_TRADED} returning encode(wallet, 'hex')",
        {"wallet_positions.covered"},
        "wallet",
    ),
    "a position that cost less than nothing": Corruption(
        f"update wallet_positions set cost_usd = -1 where {_TRADED} returning encode(wallet, 'hex')",
        {"wallet_positions.cost"},
        "wallet",
    ),
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

# For rows that belong to no market and no block the check alone identifies the corruption.
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
    "a range that was indexed within another": Corruption(
        "insert into chain_ranges (from_block, to_block, logs) values (9800, 9900, 1)", {"chain_ranges.apart"}, "9800"
    ),
    "a range indexed tomorrow with fewer than no logs": Corruption(
        f"insert into chain_ranges values (20000, 20010, -1, {AHEAD})",
        {"chain_ranges.logs", "chain_ranges.not_ahead"},
        "20000",
    ),
    "a range checked beside another": Corruption(
        f"insert into chain_checks values (9001, 9002, {AHEAD})",
        {"chain_checks.apart", "chain_checks.not_ahead"},
        "9001",
    ),
    "a day of a market that nobody knows": Corruption(
        "insert into coverage_market_days select day, 999996, 5, 5, 0, 0 from coverage_days",
        {"coverage_market_days.market"},
        "999996",
    ),
    "a file that cannot be": Corruption(
        r"insert into exports values ('nothing', current_date, 0, 'csv', 'elsewhere', -1, 0, '\x12', true, "
        f"{AHEAD})",
        {"exports.rows", "exports.bytes", "exports.sha256", "exports.file", "exports.not_ahead"},
        "nothing",
    ),
    "two files of a part that are not alike": Corruption(
        "insert into exports select 'unlike', day, part, format, replace(file, 'trades', 'unlike'), "
        "rows + case format when 'csv' then 1 else 0 end, bytes, sha256, complete, created_at from exports "
        "where topic = 'trades'",
        {"exports.alike"},
        "unlike",
    ),
    "numbers of the stream that are missing": Corruption(
        lambda conn: stream_rows.remove(conn, range(1201, 1204).__contains__), {"stream_events.no_gap"}, "1201"
    ),
    "messages that cannot be read": Corruption(
        lambda conn: stream_rows.spoil(conn, 2100), {"stream_events.message"}, "2001"
    ),
    "a message of a market that nobody knows": Corruption(
        lambda conn: stream_rows.rewrite(
            conn, lambda seq, message: replace(message, market="0xff") if seq == 2200 else message
        ),
        {"stream_events.market"},
        "2200",
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
        "insert into leaderboards (span, by, rank, wallet, volume_usd, trades, markets, computed_at) "
        "select '30d', by, n, wallet, volume_usd, trades, markets, computed_at"
        " from leaderboards, generate_series(1, 2) as n where span = 'all' and rank = 1",
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
