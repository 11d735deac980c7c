from datetime import UTC, datetime

import msgspec
import pytest

from orchestration.ingest.exchanges.polymarket import PolymarketClient
from tests.orchestration.ingest.builders import NOW, book, change, make_normalizer, token, trade
from upstream.polymarket.data_api.trades import DataApiTrade as Listed
from upstream.polymarket.market_channel.socket import BestBidAsk, TickSize, Unknown, parse
from upstream.sandbox.tape.made import assigned_tx

YES, NO = token(7, 0), token(7, 1)
BIDS, ASKS = [(400_000, 5_000_000), (390_000, 1_000_000)], [(420_000, 2_000_000)]


@pytest.fixture
def normalizer():
    made = make_normalizer(YES, NO)
    made.apply([book(YES, BIDS, ASKS)])
    made.cut_batch()
    return made


def test_a_level_change_is_a_row_and_the_book_knows_it(normalizer):
    normalizer.apply([change(YES, 1, 390_000, 9_000_000, 400_000, 420_000, NOW + 5, "ab")])

    (row,) = normalizer.cut_batch().changes
    assert (row.token, row.ts_ms, row.side, row.price, row.size, row.hash) == (
        YES,
        NOW + 5,
        1,
        390_000,
        9_000_000,
        "ab",
    )
    assert row.published
    assert normalizer.states[YES.token_id].book.bids[390_000] == 9_000_000


def test_the_best_prices_hold_after_the_last_change_of_the_message(normalizer):
    normalizer.apply(
        [
            change(YES, 1, 400_000, 0, 410_000, 420_000, NOW + 5),
            change(NO, -1, 600_000, 0, 0, 590_000, NOW + 5),
            change(YES, 1, 410_000, 1_000_000, 410_000, 420_000, NOW + 5),
        ]
    )

    assert normalizer.states[YES.token_id].book.state == "verified"
    assert normalizer.counts.mismatches == 0


def test_quotes_are_made_when_a_best_price_moves_and_only_then(normalizer):
    normalizer.apply([change(YES, 1, 390_000, 9_000_000, ts_ms=NOW + 1)])
    normalizer.apply([change(YES, 1, 410_000, 3_000_000, ts_ms=NOW + 2)])
    normalizer.apply([change(YES, 1, 410_000, 4_000_000, ts_ms=NOW + 3)])
    batch = normalizer.cut_batch()

    (quote,) = batch.quotes.values()
    assert (quote.ts_ms, quote.bid, quote.ask, quote.bid_size) == (NOW + 2, 410_000, 420_000, 3_000_000)
    assert batch.prices[YES.token_id].bid_size == 4_000_000


def test_a_message_sent_twice_is_one(normalizer):
    pair = [
        change(YES, 1, 390_000, 2, ts_ms=NOW + 1, hash_="aa"),
        change(NO, -1, 610_000, 2, ts_ms=NOW + 1, hash_="bb"),
    ]
    normalizer.apply(pair)
    normalizer.apply(pair)
    normalizer.apply([trade(YES, ts_ms=NOW + 2, tx_hash="0x" + "1" * 64)])
    normalizer.apply([trade(YES, ts_ms=NOW + 2, tx_hash="0x" + "1" * 64)])
    batch = normalizer.cut_batch()

    assert len(batch.changes) == 2
    assert len(batch.trades) == 1
    assert normalizer.counts.repeats == 3


def test_a_level_that_flips_there_and_back_within_a_millisecond_is_three_events(normalizer):
    for size in (5, 6, 5):
        normalizer.apply([change(YES, 1, 390_000, size, ts_ms=NOW + 1)])

    rows = normalizer.cut_batch().changes
    assert len({row.event_id for row in rows}) == 3
    assert [row.size for row in sorted(rows, key=lambda row: row.seq)] == [5, 6, 5]


def test_two_processes_that_receive_the_same_write_the_same():
    received = [
        [book(YES, BIDS, ASKS, NOW)],
        [change(YES, 1, 390_000, 5, ts_ms=NOW + 7)],
        [trade(YES, ts_ms=NOW + 6)],  # instants step back now and then
        [change(YES, 1, 390_000, 6, ts_ms=NOW + 7), change(NO, -1, 600_000, 6, ts_ms=NOW + 7)],
    ]
    first, second = make_normalizer(YES, NO), make_normalizer(NO, YES)
    for messages in received:
        first.apply(messages)
        second.apply(messages)

    one, other = first.cut_batch(), second.cut_batch()
    assert (one.trades, one.changes, one.snapshots) == (other.trades, other.changes, other.snapshots)
    assert one.trades[0].seq > one.changes[0].seq


def test_the_late_standby_names_events_as_the_leader_does(normalizer):
    late = make_normalizer(YES)
    message = [change(YES, 1, 390_000, 5, ts_ms=NOW + 7)]
    normalizer.apply(message)
    late.apply(message)

    assert late.cut_batch().changes[0].event_id == normalizer.cut_batch().changes[0].event_id


def test_a_book_that_disagrees_is_unverified_at_once_and_fetched(normalizer):
    normalizer.apply([change(YES, 1, 390_000, 5, 410_000, 420_000, NOW + 1)])

    assert not normalizer.states[YES.token_id].live_book().verified
    assert [state.token for state in normalizer.mismatched] == [YES]
    assert YES.token_id in normalizer.unsynced
    assert normalizer.counts.mismatches == 1
    assert not normalizer.cut_batch().changes[0].published


def test_a_change_that_was_overtaken_is_stored_and_not_streamed(normalizer):
    normalizer.apply([change(YES, 1, 390_000, 20, ts_ms=NOW + 9)])
    normalizer.apply([change(YES, 1, 390_000, 5, ts_ms=NOW + 3), change(YES, 1, 380_000, 7, ts_ms=NOW + 3)])

    rows = normalizer.cut_batch().changes
    assert [(row.price, row.size, row.published) for row in rows] == [
        (390_000, 20, True),
        (390_000, 5, False),
        (380_000, 7, True),
    ]
    assert normalizer.states[YES.token_id].book.bids[390_000] == 20


def test_a_trade_that_comes_late_is_kept_and_is_not_the_last_price(normalizer):
    normalizer.apply([trade(YES, 410_000, ts_ms=NOW + 9)])
    normalizer.apply([trade(YES, 400_000, ts_ms=NOW + 3)])
    batch = normalizer.cut_batch()

    assert [row.price for row in batch.trades] == [410_000, 400_000]
    price = batch.prices[YES.token_id]
    assert (price.last, price.last_ms) == (410_000, NOW + 9)


def test_a_hash_that_was_only_assigned_names_the_trade_and_is_stored_as_none(normalizer):
    assigned = assigned_tx("a trade that was recorded without its hash")
    normalizer.apply([trade(YES, 410_000, ts_ms=NOW + 9, tx_hash=assigned)])
    (row,) = normalizer.cut_batch().trades

    second = datetime.fromtimestamp(NOW // 1000, UTC)
    listed = Listed(YES.token_id, YES.market_id, second, 1, 410_000, 1_000_000, assigned, "0x" + "5d" * 20)
    (filled,) = PolymarketClient("", "", "", "").rows({YES.token_id: YES}, [listed])
    assert row.tx_hash is filled.tx_hash is None
    assert row.trade_id == filled.trade_id  # though the two sources give it different times


def test_a_broken_book_is_verified_again_by_a_snapshot_and_later_changes(normalizer):
    normalizer.apply([change(YES, 1, 390_000, 5, 410_000, 420_000, NOW + 1)])
    normalizer.apply([change(YES, 1, 380_000, 8, 410_000, 420_000, NOW + 3)])

    assert normalizer.anchor(book(YES, [(410_000, 1), (390_000, 5)], ASKS, NOW + 2))
    state = normalizer.states[YES.token_id]
    assert state.book.bids == {410_000: 1, 390_000: 5, 380_000: 8}
    assert YES.token_id not in normalizer.unsynced
    assert state.live_book().needs_snapshot
    assert state.complete_since_ms is not None


def test_while_a_book_is_broken_the_exchanges_own_best_prices_are_shown(normalizer):
    normalizer.apply([change(YES, 1, 390_000, 5, 410_000, 1_000_000, NOW + 1)])

    price = normalizer.cut_batch().prices[YES.token_id]
    assert (price.bid, price.ask, price.bid_size) == (410_000, None, None)


@pytest.mark.parametrize("later", ["the exchange goes on", "it says nothing more"])
def test_announced_best_prices_that_never_come_true_break_the_book(later):
    now = [NOW / 1000]
    normalizer = make_normalizer(YES, NO, clock=lambda: now[0])
    normalizer.apply([book(YES, BIDS, ASKS), book(NO, [], [])])
    normalizer.apply([BestBidAsk(YES.token_id, YES.market_id, NOW + 5, 410_000, 420_000)])
    now[0] += 1.1
    normalizer.cut_batch()
    assert normalizer.states[YES.token_id].book.state == "verified"

    if later == "the exchange goes on":
        normalizer.apply([trade(NO, ts_ms=NOW + 1_006)])
    else:
        now[0] += 9
    normalizer.cut_batch()
    assert list(normalizer.unsynced) == [YES.token_id]


def test_announced_best_prices_that_come_true_in_time_change_nothing():
    normalizer = make_normalizer(YES, clock=lambda: NOW / 1000 + 60)
    normalizer.apply([book(YES, BIDS, ASKS)])
    normalizer.apply([BestBidAsk(YES.token_id, YES.market_id, NOW + 5, 410_000, 420_000)])
    normalizer.apply([change(YES, 1, 410_000, 5, ts_ms=NOW + 900)])
    normalizer.apply([trade(YES, ts_ms=NOW + 2_000)])
    normalizer.cut_batch()

    assert normalizer.unsynced == {}


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (trade(YES, price=1_000_001), "price"),
        (trade(YES, price=0), "price"),
        (trade(YES, size=0), "size"),
        (trade(YES, ts_ms=NOW + 3_600_000), "instant"),
        (trade(YES, ts_ms=NOW - 30 * 86_400_000), "instant"),
        (change(YES, 1, 500_000, 5, ts_ms=NOW + 3_600_000), "instant"),
        (book(YES, BIDS, ASKS, ts_ms=5), "instant"),
    ],
)
def test_what_cannot_be_goes_to_quarantine_with_what_came(normalizer, wrong, reason):
    normalizer.apply([wrong])
    batch = normalizer.cut_batch()

    (refusal,) = batch.refusals
    assert reason in refusal.reason
    assert YES.token_id in refusal.payload
    assert (batch.trades, batch.changes, batch.snapshots) == ([], [], [])


def test_a_frame_that_is_no_message_goes_to_quarantine(normalizer):
    normalizer.apply(parse('{"event_type":"last_trade_price","asset_id":"1","price":"lots"}'))

    assert normalizer.cut_batch().refusals[0].source == "market_socket"


def test_messages_of_unknown_tokens_and_of_unknown_kinds_are_counted(normalizer):
    unknown = token(99)
    normalizer.apply([trade(unknown), change(unknown, 1, 5, 5), Unknown("confetti")])

    assert (normalizer.counts.unknown_tokens, normalizer.counts.unknown_kinds) == (2, 1)
    assert normalizer.unknown_tokens == {unknown.token_id}
    assert len(normalizer.cut_batch()) == 0


def test_a_snapshot_that_changes_nothing_is_stored_but_not_published(normalizer):
    normalizer.states[YES.token_id].needs_snapshot = False
    normalizer.apply([book(YES, BIDS, ASKS, NOW + 5)])

    assert len(normalizer.cut_batch().snapshots) == 1
    assert not normalizer.states[YES.token_id].needs_snapshot


def test_a_new_connections_greeting_with_the_same_book_is_no_new_event(normalizer):
    normalizer.invalidate([YES.token_id])
    normalizer.apply([book(YES, BIDS, ASKS)])

    assert normalizer.states[YES.token_id].book.state == "verified"
    assert normalizer.cut_batch().snapshots == []


def test_a_snapshot_that_was_overtaken_stands_before_what_overtook_it(normalizer):
    normalizer.apply([change(YES, 1, 380_000, 5, ts_ms=NOW + 9)])
    normalizer.apply([book(YES, BIDS, ASKS, NOW + 5)])
    batch = normalizer.cut_batch()

    assert batch.snapshots[0].seq < batch.changes[0].seq
    assert YES.token_id in normalizer.unsynced


def test_a_books_own_tick_and_last_price_are_known(normalizer):
    normalizer.apply([TickSize(YES.token_id, YES.market_id, NOW, 10_000, 1_000), trade(YES, 410_000, ts_ms=NOW + 1)])

    price = normalizer.cut_batch().prices[YES.token_id]
    assert (price.last, price.last_ms) == (410_000, NOW + 1)
    assert normalizer.states[YES.token_id].live_book().tick_size == 1_000


def test_a_token_no_longer_followed_is_no_longer_verified(normalizer):
    normalizer.unfollow(YES.token_id)
    normalizer.apply([trade(YES)])

    assert normalizer.counts.unknown_tokens == 1
    assert normalizer.live_books.take(0).unverified == [YES]


def test_messages_of_a_market_wait_until_the_catalogue_knows_it(normalizer):
    fresh = token(50)
    normalizer.pending[fresh.token_id] = []
    normalizer.apply([book(fresh, BIDS, ASKS)])
    normalizer.apply([trade(fresh, ts_ms=NOW + 1), change(fresh, 1, 390_000, 7, ts_ms=NOW + 2)])
    assert len(normalizer.cut_batch()) == 0

    normalizer.follow(fresh, listed_ms=NOW)
    batch = normalizer.cut_batch()
    assert (len(batch.snapshots), len(batch.trades), len(batch.changes)) == (1, 1, 1)
    assert normalizer.counts.unknown_tokens == 0


def test_a_crossed_snapshot_is_fetched_again_and_not_shown_meanwhile(normalizer):
    normalizer.apply([book(YES, [(430_000, 1)], [(420_000, 1)], NOW + 5)])

    assert YES.token_id in normalizer.unsynced
    assert normalizer.live_books.take(0).unverified == [YES]

    normalizer.anchor(book(YES, BIDS, ASKS, NOW + 6))
    assert normalizer.states[YES.token_id].live_book().verified


@pytest.mark.parametrize(
    "early",
    [
        trade(YES, ts_ms=NOW + 3_600_000),
        trade(YES, ts_ms=NOW + 500_000),
        change(YES, 1, 390_000, 5, ts_ms=NOW + 3_600_000),
        change(YES, 1, 390_000, 5, ts_ms=NOW + 500_000),
        book(YES, BIDS, ASKS, ts_ms=NOW + 500_000),
        BestBidAsk(YES.token_id, YES.market_id, NOW + 86_400_000, 400_000, 420_000),
    ],
    ids=["a refused trade", "a trade", "a refused change", "a change", "a book", "best prices"],
)
def test_a_message_from_the_future_does_not_advance_a_sockets_newest_instant(early):
    now = [NOW / 1000]
    normalizer = make_normalizer(YES, NO, clock=lambda: now[0])
    normalizer.apply([book(YES, BIDS, ASKS)])
    for _ in range(5):
        now[0] += 0.5
        normalizer.apply([change(NO, 1, 390_000, 5, ts_ms=int(now[0] * 1000) - 80)])
        normalizer.cut_batch()

    assert normalizer.apply([early]) <= int(now[0] * 1000)
    now[0] += 0.5
    normalizer.cut_batch()
    assert normalizer.apply([change(NO, 1, 390_000, 6, ts_ms=int(now[0] * 1000) - 80)]) <= int(now[0] * 1000)


@pytest.fixture
def numbered(normalizer):
    normalizer.sequenced = True
    for state in normalizer.states.values():
        state.book.numbered = True
    return normalizer


def test_a_numbered_change_from_before_its_snapshot_becomes_a_snapshot(numbered):
    """Stored books are rebuilt in the order of time: as a change it would stand before the snapshot, without effect."""
    numbered.apply([book(YES, BIDS, ASKS, NOW + 50)])
    numbered.apply([change(YES, 1, 410_000, 3_000_000, ts_ms=NOW + 40)])
    batch = numbered.cut_batch()

    assert not batch.changes
    first, second = batch.snapshots
    assert (first.ts_ms, second.ts_ms) == (NOW + 50, NOW + 50)
    assert second.seq > first.seq
    assert second.bids == [(410_000, 3_000_000), *BIDS]
    assert numbered.states[YES.token_id].book.best_bid == 410_000
    assert batch.quotes[YES.token_id, NOW + 50].bid == 410_000


def test_a_numbered_change_that_is_older_than_the_one_before_it_still_applies(numbered):
    numbered.apply([change(YES, 1, 410_000, 3_000_000, ts_ms=NOW + 60)])
    numbered.apply([change(YES, 1, 410_000, 0, ts_ms=NOW + 55)])
    first, second = numbered.cut_batch().changes

    assert (second.ts_ms, second.published) == (NOW + 55, True)
    assert second.seq > first.seq
    assert numbered.states[YES.token_id].book.best_bid == 400_000


def test_a_numbered_book_may_be_crossed_for_a_moment(numbered):
    state = numbered.states[YES.token_id]
    numbered.apply([change(YES, 1, 430_000, 3_000_000, ts_ms=NOW + 60)])
    assert (state.book.state, numbered.counts.mismatches) == ("verified", 0)
    numbered.apply([change(YES, -1, 420_000, 0, ts_ms=NOW + 60)])

    assert (state.book.best_bid, state.book.best_ask) == (430_000, None)


def test_a_numbered_snapshot_stands_after_the_change_before_it(numbered):
    numbered.apply([change(YES, 1, 390_000, 9_000_000, ts_ms=NOW + 80)])
    numbered.apply([book(YES, BIDS[:1], ASKS, NOW + 60)])
    batch = numbered.cut_batch()

    assert batch.snapshots[0].ts_ms == NOW + 80
    assert batch.snapshots[0].seq > batch.changes[0].seq
    assert numbered.states[YES.token_id].book.bids == dict(BIDS[:1])
    assert YES.token_id not in numbered.unsynced


def test_a_trade_with_an_id_keeps_it_and_a_block_trade_is_not_the_last_price(normalizer):
    one = msgspec.structs.replace(trade(YES, 400_000, ts_ms=NOW + 1), trade_id=77)
    block = msgspec.structs.replace(trade(YES, 900_000, ts_ms=NOW + 2), trade_id=78, is_block=True)
    normalizer.apply([one])
    normalizer.apply([one, block])
    batch = normalizer.cut_batch()

    assert [row.trade_id for row in batch.trades] == [77, 78]
    assert batch.prices[YES.token_id].last == 400_000
