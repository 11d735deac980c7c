from datetime import UTC, datetime

import pytest

from orchestration.ingest.exchange import Exchange
from tests.orchestration.ingest.making import NOW, book, change, token, tracker, trade
from upstream.polymarket.data_api.trades import Trade as Listed
from upstream.polymarket.market_channel.socket import BestBidAsk, TickSize, Unknown, parse
from upstream.sandbox.tape.made import assigned_tx

YES, NO = token(7, 0), token(7, 1)
BIDS, ASKS = [(400_000, 5_000_000), (390_000, 1_000_000)], [(420_000, 2_000_000)]


@pytest.fixture
def following():
    made = tracker(YES, NO)
    made.take([book(YES, BIDS, ASKS)])
    made.cut()
    return made


def test_a_level_change_is_a_row_and_the_book_knows_it(following):
    following.take([change(YES, 1, 390_000, 9_000_000, 400_000, 420_000, NOW + 5, "ab")])

    (row,) = following.cut().changes
    assert (row.token, row.ts_ms, row.side, row.price, row.size, row.hash) == (
        YES,
        NOW + 5,
        1,
        390_000,
        9_000_000,
        "ab",
    )
    assert row.told
    assert following.tracks[YES.token_id].book.bids[390_000] == 9_000_000


def test_the_best_prices_hold_after_the_last_change_of_the_message(following):
    following.take(
        [
            change(YES, 1, 400_000, 0, 410_000, 420_000, NOW + 5),
            change(NO, -1, 600_000, 0, 0, 590_000, NOW + 5),
            change(YES, 1, 410_000, 1_000_000, 410_000, 420_000, NOW + 5),
        ]
    )

    assert following.tracks[YES.token_id].book.state == "verified"
    assert following.counts.mismatches == 0


def test_quotes_are_made_when_a_best_price_moves_and_only_then(following):
    following.take([change(YES, 1, 390_000, 9_000_000, ts_ms=NOW + 1)])
    following.take([change(YES, 1, 410_000, 3_000_000, ts_ms=NOW + 2)])
    following.take([change(YES, 1, 410_000, 4_000_000, ts_ms=NOW + 3)])
    batch = following.cut()

    (quote,) = batch.quotes.values()
    assert (quote.ts_ms, quote.bid, quote.ask, quote.bid_size) == (NOW + 2, 410_000, 420_000, 3_000_000)
    assert batch.prices[YES.token_id].bid_size == 4_000_000


def test_a_message_sent_twice_is_one(following):
    pair = [
        change(YES, 1, 390_000, 2, ts_ms=NOW + 1, hash_="aa"),
        change(NO, -1, 610_000, 2, ts_ms=NOW + 1, hash_="bb"),
    ]
    following.take(pair)
    following.take(pair)
    following.take([trade(YES, ts_ms=NOW + 2, tx_hash="0x" + "1" * 64)])
    following.take([trade(YES, ts_ms=NOW + 2, tx_hash="0x" + "1" * 64)])
    batch = following.cut()

    assert len(batch.changes) == 2
    assert len(batch.trades) == 1
    assert following.counts.repeats == 3


def test_a_level_that_flips_there_and_back_within_a_millisecond_is_three_events(following):
    for size in (5, 6, 5):
        following.take([change(YES, 1, 390_000, size, ts_ms=NOW + 1)])

    rows = following.cut().changes
    assert len({row.event_id for row in rows}) == 3
    assert [row.size for row in sorted(rows, key=lambda row: row.seq)] == [5, 6, 5]


def test_two_processes_that_hear_the_same_write_the_same():
    heard = [
        [book(YES, BIDS, ASKS, NOW)],
        [change(YES, 1, 390_000, 5, ts_ms=NOW + 7)],
        [trade(YES, ts_ms=NOW + 6)],  # instants step back now and then
        [change(YES, 1, 390_000, 6, ts_ms=NOW + 7), change(NO, -1, 600_000, 6, ts_ms=NOW + 7)],
    ]
    first, second = tracker(YES, NO), tracker(NO, YES)
    for messages in heard:
        first.take(messages)
        second.take(messages)

    one, other = first.cut(), second.cut()
    assert (one.trades, one.changes, one.snapshots) == (other.trades, other.changes, other.snapshots)
    assert one.trades[0].seq > one.changes[0].seq


def test_the_late_standby_names_events_as_the_leader_does(following):
    late = tracker(YES)
    message = [change(YES, 1, 390_000, 5, ts_ms=NOW + 7)]
    following.take(message)
    late.take(message)

    assert late.cut().changes[0].event_id == following.cut().changes[0].event_id


def test_a_book_that_disagrees_is_unverified_at_once_and_asked_for(following):
    following.take([change(YES, 1, 390_000, 5, 410_000, 420_000, NOW + 1)])

    assert not following.tracks[YES.token_id].live_book().verified
    assert [track.token for track in following.mismatched] == [YES]
    assert YES.token_id in following.astray
    assert following.counts.mismatches == 1
    assert not following.cut().changes[0].told


def test_a_change_that_was_overtaken_is_kept_and_not_streamed(following):
    following.take([change(YES, 1, 390_000, 20, ts_ms=NOW + 9)])
    following.take([change(YES, 1, 390_000, 5, ts_ms=NOW + 3), change(YES, 1, 380_000, 7, ts_ms=NOW + 3)])

    rows = following.cut().changes
    assert [(row.price, row.size, row.told) for row in rows] == [
        (390_000, 20, True),
        (390_000, 5, False),
        (380_000, 7, True),
    ]
    assert following.tracks[YES.token_id].book.bids[390_000] == 20


def test_a_trade_that_comes_late_is_kept_and_is_not_the_last_price(following):
    following.take([trade(YES, 410_000, ts_ms=NOW + 9)])
    following.take([trade(YES, 400_000, ts_ms=NOW + 3)])
    batch = following.cut()

    assert [row.price for row in batch.trades] == [410_000, 400_000]
    price = batch.prices[YES.token_id]
    assert (price.last, price.last_ms) == (410_000, NOW + 9)


def test_a_hash_that_was_only_assigned_names_the_trade_and_is_stored_as_none(following):
    assigned = assigned_tx("a trade that was recorded without its hash")
    following.take([trade(YES, 410_000, ts_ms=NOW + 9, tx_hash=assigned)])
    (row,) = following.cut().trades

    second = datetime.fromtimestamp(NOW // 1000, UTC)
    listed = Listed(YES.token_id, YES.market_id, second, 1, 410_000, 1_000_000, assigned, "0x" + "5d" * 20)
    (filled,) = Exchange("", "", "", "").rows({YES.token_id: YES}, [listed])
    assert row.tx_hash is filled.tx_hash is None
    assert row.trade_id == filled.trade_id  # though the two sources give it different times


def test_a_broken_book_stands_again_on_a_snapshot_and_what_came_since(following):
    following.take([change(YES, 1, 390_000, 5, 410_000, 420_000, NOW + 1)])
    following.take([change(YES, 1, 380_000, 8, 410_000, 420_000, NOW + 3)])

    assert following.anchor(book(YES, [(410_000, 1), (390_000, 5)], ASKS, NOW + 2))
    track = following.tracks[YES.token_id]
    assert track.book.bids == {410_000: 1, 390_000: 5, 380_000: 8}
    assert YES.token_id not in following.astray
    assert track.live_book().jumped
    assert track.whole_since_ms is not None


def test_while_a_book_is_broken_the_exchanges_own_best_prices_are_shown(following):
    following.take([change(YES, 1, 390_000, 5, 410_000, 1_000_000, NOW + 1)])

    price = following.cut().prices[YES.token_id]
    assert (price.bid, price.ask, price.bid_size) == (410_000, None, None)


@pytest.mark.parametrize("later", ["the exchange goes on", "it says nothing more"])
def test_announced_best_prices_that_never_come_true_break_the_book(later):
    now = [NOW / 1000]
    following = tracker(YES, NO, clock=lambda: now[0])
    following.take([book(YES, BIDS, ASKS), book(NO, [], [])])
    following.take([BestBidAsk(YES.token_id, YES.market_id, NOW + 5, 410_000, 420_000)])
    now[0] += 1.1
    following.cut()
    assert following.tracks[YES.token_id].book.state == "verified"

    if later == "the exchange goes on":
        following.take([trade(NO, ts_ms=NOW + 1_006)])
    else:
        now[0] += 9
    following.cut()
    assert list(following.astray) == [YES.token_id]


def test_announced_best_prices_that_come_true_in_time_change_nothing():
    following = tracker(YES, clock=lambda: NOW / 1000 + 60)
    following.take([book(YES, BIDS, ASKS)])
    following.take([BestBidAsk(YES.token_id, YES.market_id, NOW + 5, 410_000, 420_000)])
    following.take([change(YES, 1, 410_000, 5, ts_ms=NOW + 900)])
    following.take([trade(YES, ts_ms=NOW + 2_000)])
    following.cut()

    assert following.astray == {}


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
def test_what_cannot_be_goes_to_quarantine_with_what_came(following, wrong, reason):
    following.take([wrong])
    batch = following.cut()

    (refusal,) = batch.refusals
    assert reason in refusal.reason
    assert YES.token_id in refusal.payload
    assert (batch.trades, batch.changes, batch.snapshots) == ([], [], [])


def test_a_frame_that_is_no_message_goes_to_quarantine(following):
    following.take(parse('{"event_type":"last_trade_price","asset_id":"1","price":"lots"}'))

    assert following.cut().refusals[0].source == "market_socket"


def test_messages_of_strangers_and_of_unknown_kinds_are_counted(following):
    stranger = token(99)
    following.take([trade(stranger), change(stranger, 1, 5, 5), Unknown("confetti")])

    assert (following.counts.unknown_tokens, following.counts.unknown_kinds) == (2, 1)
    assert following.strangers == {stranger.token_id}
    assert len(following.cut()) == 0


def test_a_snapshot_that_tells_nothing_new_is_kept_but_not_told(following):
    following.tracks[YES.token_id].jumped = False
    following.take([book(YES, BIDS, ASKS, NOW + 5)])

    assert len(following.cut().snapshots) == 1
    assert not following.tracks[YES.token_id].jumped


def test_a_new_connections_greeting_with_the_same_book_is_no_new_event(following):
    following.lose([YES.token_id])
    following.take([book(YES, BIDS, ASKS)])

    assert following.tracks[YES.token_id].book.state == "verified"
    assert following.cut().snapshots == []


def test_a_snapshot_that_was_overtaken_stands_before_what_overtook_it(following):
    following.take([change(YES, 1, 380_000, 5, ts_ms=NOW + 9)])
    following.take([book(YES, BIDS, ASKS, NOW + 5)])
    batch = following.cut()

    assert batch.snapshots[0].seq < batch.changes[0].seq
    assert YES.token_id in following.astray


def test_a_books_own_tick_and_last_price_are_known(following):
    following.take([TickSize(YES.token_id, YES.market_id, NOW, 10_000, 1_000), trade(YES, 410_000, ts_ms=NOW + 1)])

    price = following.cut().prices[YES.token_id]
    assert (price.last, price.last_ms) == (410_000, NOW + 1)
    assert following.tracks[YES.token_id].live_book().tick_size == 1_000


def test_a_token_no_longer_followed_is_no_longer_vouched_for(following):
    following.leave(YES.token_id)
    following.take([trade(YES)])

    assert following.counts.unknown_tokens == 1
    assert following.touched[YES.token_id].live_book().verified is False


def test_what_is_said_of_a_market_before_the_catalogue_knows_it_waits(following):
    fresh = token(50)
    following.awaited[fresh.token_id] = []
    following.take([book(fresh, BIDS, ASKS)])
    following.take([trade(fresh, ts_ms=NOW + 1), change(fresh, 1, 390_000, 7, ts_ms=NOW + 2)])
    assert len(following.cut()) == 0

    following.follow(fresh, fresh=True)
    batch = following.cut()
    assert (len(batch.snapshots), len(batch.trades), len(batch.changes)) == (1, 1, 1)
    assert following.counts.unknown_tokens == 0


def test_a_crossed_snapshot_is_asked_for_again_and_not_shown_meanwhile(following):
    following.take([book(YES, [(430_000, 1)], [(420_000, 1)], NOW + 5)])

    assert YES.token_id in following.astray
    assert not following.touched[YES.token_id].live_book().verified

    following.anchor(book(YES, BIDS, ASKS, NOW + 6))
    assert following.tracks[YES.token_id].live_book().verified


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
def test_a_message_from_the_future_does_not_say_how_far_a_socket_has_been_heard(early):
    now = [NOW / 1000]
    following = tracker(YES, NO, clock=lambda: now[0])
    following.take([book(YES, BIDS, ASKS)])
    for _ in range(5):
        now[0] += 0.5
        following.take([change(NO, 1, 390_000, 5, ts_ms=int(now[0] * 1000) - 80)])
        following.cut()

    assert following.take([early]) <= int(now[0] * 1000)
    now[0] += 0.5
    following.cut()
    assert following.take([change(NO, 1, 390_000, 6, ts_ms=int(now[0] * 1000) - 80)]) <= int(now[0] * 1000)
