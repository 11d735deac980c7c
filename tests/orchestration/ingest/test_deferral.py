"""What a standby that leaves frames unparsed keeps, and when it parses it."""

import asyncio
import random
from time import monotonic
from unittest.mock import AsyncMock

import msgspec
import psycopg
import pytest

from config.settings import Settings
from orchestration.feeds.lease import LeaseRow
from orchestration.ingest import session as session_module
from orchestration.ingest.clock import ExchangeClock
from orchestration.ingest.deferral import DeferringNormalizer, catch_up
from orchestration.ingest.loop import DEFERRING_GATHER_S, OPENING_GATHER_S
from orchestration.ingest.progress import Turn
from orchestration.ingest.receiver import Receiver
from orchestration.ingest.storage.backlog import Backlog
from orchestration.ingest.storage.rows import WriteBatch
from tests.orchestration.ingest.builders import NOW, UNREACHABLE, make_normalizer, token, trade, trades
from tests.orchestration.ingest.deferral_histories import ENOUGH, Market, Run, Socket, array
from tests.orchestration.ingest.test_session import make_session
from upstream.polymarket.market_channel import outgoing
from upstream.polymarket.market_channel.socket import parse
from upstream.transport.micro import ONE


@pytest.fixture(scope="module")
def database_url_of_file(new_database):
    with new_database() as url:
        yield url


# --- When a run leaves frames unparsed ---


def lease_of(run_id, role, silent_s=1.0):
    return LeaseRow(run_id, role, True, 0.0, silent_s, {})


@pytest.mark.parametrize(
    ("leases", "defers"),
    [
        (None, False),
        ([], False),
        ([lease_of("other", "leader")], True),
        ([lease_of("other", "leader", silent_s=29.0)], True),
        ([lease_of("other", "leader", silent_s=31.0)], False),
        ([lease_of("other", "standby"), lease_of("another", "gone")], False),
        ([lease_of("me", "leader")], False),
    ],
)
def test_a_standby_leaves_frames_unparsed_while_another_run_leads(leases, defers):
    async def deferring(**settings):
        session = make_session(**settings)
        session.committer.leases = leases
        session._run_in = AsyncMock(side_effect=psycopg.OperationalError)
        with pytest.raises(psycopg.OperationalError):
            await session._beat()
        return session.receiver.normalizer.defers

    assert asyncio.run(deferring(live_standby_defers=True)) is defers
    assert not asyncio.run(deferring(live_standby_defers=False))


def test_a_run_leaves_frames_unparsed_while_a_run_of_another_number_of_shards_leads():
    session = make_session(live_standby_defers=True)
    for others_lead in (True, False):
        session._turn = Turn(may_lead=False, over=False, others_lead=others_lead)
        assert session._defers() is others_lead


@pytest.mark.parametrize("ready", [False, True])
def test_events_gather_for_longer_once_every_book_is_synced(monkeypatch, ready):
    gathered = []
    monkeypatch.setattr(session_module, "gather", gathered.append)

    async def tick():
        session = make_session(live_standby_defers=True)
        session.receiver.normalizer.defers = True
        session.receiver.resync.ready_since = 0.0 if ready else None
        session.committer.tick = AsyncMock(side_effect=lambda **_: session.ending.set())
        await session._tick()

    asyncio.run(tick())
    assert gathered == [DEFERRING_GATHER_S if ready else OPENING_GATHER_S]


def test_markets_kept_for_too_long_are_parsed_without_a_database():
    async def parsed():
        session = make_session(live_standby_defers=True)
        before_ms = []
        session._run_in = AsyncMock(side_effect=psycopg.OperationalError)
        session.committer.tick, session._end = AsyncMock(), AsyncMock()
        session.receiver.normalizer.settle = lambda ms: (before_ms.append(ms), session.ending.set())
        await session.run()
        return before_ms

    assert asyncio.run(parsed()) == [0]


# --- Frames ---


def make(*, max_kept_bytes=ENOUGH, clock=None):
    """Return a normalizer that defers, a market with verified books, a socket, and the clock."""
    now = clock or [NOW / 1000]
    made = DeferringNormalizer(lambda: now[0], exchange=ExchangeClock(lambda: now[0]), max_kept_bytes=max_kept_bytes)
    market = Market(1, random.Random(1), NOW)
    for each in market.tokens:
        made.follow(each, 10_000)
    made.apply(parse(array([market.book(0, NOW), market.book(1, NOW)])))
    made.cut_batch()
    made.defers = True
    return made, market, Socket(), now


def keep(made, listener, *messages):
    return [made.keep(listener, msgspec.json.encode(each), 5.0) for each in messages]


def test_a_kept_frame_counts_as_received():
    made, market, listener, _ = make()
    change = market.change(NOW - 5, top=True)
    messages = made.counts.messages + len(change.price_changes) + 1
    kept = keep(made, listener, change, market.book(0, NOW - 5))

    assert kept == [True, True]
    assert (listener.greeted, listener.newest_ms, listener.pulse.received_at) == (True, NOW - 5, 5.0)
    assert made.counts.messages == messages
    assert made.kept_bytes > 0
    assert len(made.cut_batch()) == 0
    made.catch_up([market.tokens[0].token_id])
    assert (made.counts.messages, made.kept_bytes) == (messages, 0)
    assert len(made.cut_batch()) == len(change.price_changes) + 1


@pytest.mark.parametrize(
    "frame",
    [
        b"PONG",
        b"[]",
        b"{",
        b'{"market":"0x%064x","event_type":"book"}' % 1,
        b'{"market":"0x%064x","timestamp":"1","event_type":"book"}' % 1,
        b'{"market":"0x%064x","timestamp":"%d","event_type":"new_market"}' % (1, NOW),
        b'{"market":"0x%064x","timestamp":"%d","event_type":"best_bid_ask"}' % (2, NOW),
        b'{"market":"0x%064x","timestamp":"%d","event_type":"best_bid_ask"}' % (1, NOW + 10**9),
        b'[{"market":"0x%064x","timestamp":"%d","event_type":"best_bid_ask"}]' % (1, NOW),
    ],
)
def test_what_is_not_as_expected_is_parsed_at_once(frame):
    made, _, listener, _ = make()

    assert not made.keep(listener, frame, 5.0)


def test_a_market_that_waits_for_a_book_or_for_a_change_is_parsed_at_once():
    made, market, listener, _ = make()
    made.apply(parse(msgspec.json.encode(next(market.best(400_000, 600_000, NOW)))))
    assert keep(made, listener, market.change(NOW, top=True)) == [False]

    made, market, listener, _ = make()
    made.invalidate([market.tokens[1].token_id])
    assert keep(made, listener, market.change(NOW, top=True)) == [False]


def test_frames_before_full_books_of_all_tokens_are_dropped_once_they_are_committed():
    made, market, listener, now = make()
    made.settle(NOW - 1_000)
    keep(made, listener, *(market.change(NOW, top=True) for _ in range(50)), *market.trade(NOW))
    keep(made, listener, market.book(0, NOW))
    grown = made.kept_bytes
    now[0] += 1
    keep(made, listener, *(market.change(NOW + 1_000, top=True) for _ in range(5)), market.book(1, NOW + 1_000))
    keep(made, listener, market.change(NOW + 1_000, top=True))
    now[0] += 1
    keep(made, listener, market.book(0, NOW + 2_000), market.book(1, NOW + 2_000))
    assert made.kept_bytes > grown

    made.settle(NOW + 1_500)
    keep(made, listener, market.book(0, NOW + 2_000), market.book(1, NOW + 2_000))
    assert made.kept_bytes < grown / 4
    keep(made, listener, market.change(NOW + 2_000, top=True))
    made.catch_up([market.tokens[0].token_id])
    batch = made.cut_batch()

    assert (made.mismatched, made.unsynced, made.counts.refused) == ([], {}, 0)
    assert batch.trades == []
    assert {row.ts_ms for row in batch.snapshots} == {NOW + 2_000}
    first = made.states[market.tokens[0].token_id]
    assert (first.book.bids, first.book.asks) == (market.bids, market.asks)
    assert first.last_ms == NOW or made.states[market.tokens[1].token_id].last_ms == NOW


def test_a_full_book_that_cannot_be_read_makes_the_book_one_that_disagrees():
    made, market, listener, now = make()
    broken = msgspec.json.encode(market.book(0, NOW)).replace(b'"bids":[', b'"bids":[7,')
    made.settle(NOW - 1_000)
    keep(made, listener, market.change(NOW, top=True))
    assert made.keep(listener, broken, 5.0)
    keep(made, listener, market.book(1, NOW))
    now[0] += 2
    made.settle(NOW + 1_000)
    keep(made, listener, market.book(0, NOW), market.book(1, NOW))
    made.settle(NOW + 3_000)
    made.catch_up([market.tokens[0].token_id])

    assert made.states[market.tokens[0].token_id].book.state == "verified", "the later full book is right"

    made, market, listener, now = make()
    made.settle(NOW - 1_000)
    keep(made, listener, market.change(NOW, top=True), market.book(1, NOW))
    for _ in range(2):
        assert made.keep(listener, broken, 5.0)
        now[0] += 2
        made.settle(int(now[0] * 1000) - 1)
        keep(made, listener, market.book(1, NOW))
    made.catch_up([market.tokens[0].token_id])
    assert [state.token.outcome for state in made.mismatched] == [0]
    assert market.tokens[0].token_id in made.unsynced


def test_beyond_the_limit_the_market_kept_for_longest_is_parsed():
    made, market, listener, _ = make(max_kept_bytes=5_000)
    keep(made, listener, *(market.change(NOW, top=True) for _ in range(30)))

    assert made.kept_bytes <= 5_000
    assert len(made.cut_batch()) > 10


def test_a_market_without_full_books_is_parsed_after_two_minutes():
    made, market, listener, now = make()
    keep(made, listener, market.change(NOW, top=True))
    now[0] += 119
    made.settle(NOW - 20_000)
    assert made.kept_bytes > 0

    now[0] += 2
    made.settle(NOW - 20_000)
    assert made.kept_bytes == 0


def test_a_market_that_full_books_keep_short_does_not_hold_up_an_older_one():
    made, market, listener, now = make()
    other = Market(2, random.Random(2), NOW)
    for each in other.tokens:
        made.follow(each, 10_000)
    made.defers = False
    made.apply(parse(array([other.book(0, NOW), other.book(1, NOW)])))
    made.defers = True
    best = market.best(max(market.bids), min(market.asks), NOW)
    keep(made, listener, *best, other.change(NOW, top=True))
    for at_ms in (NOW + 30_000, NOW + 60_000):  # the second pair replaces one short frame: what is kept still grows
        now[0] = at_ms / 1000
        made.settle(at_ms - 1)
        keep(made, listener, market.book(0, at_ms), market.book(1, at_ms))
    kept = made.kept_bytes
    now[0] = NOW / 1000 + 121
    made.settle(0)

    assert made.counts.refused == 0
    assert 0 < made.kept_bytes < kept, "the other one is older than two minutes"
    made.catch_up([other.tokens[0].token_id])
    assert made.kept_bytes > 0


def test_a_lost_socket_s_books_are_compared_as_they_were_when_it_was_lost():
    made, market, listener, _ = make()
    keep(made, listener, market.change(NOW, top=True))
    made.invalidate([each.token_id for each in market.tokens])
    lost_at = monotonic()
    made.apply(parse(array([market.book(0, NOW), market.book(1, NOW)])))

    assert not any(state.book.moved_since(lost_at) for state in made.states.values()), "nothing was missed"


def test_kept_frames_count_in_the_memory_of_a_run():
    made, market, listener, _ = make()
    backlog = Backlog(10_000)
    keep(made, listener, *(market.change(NOW, top=True) for _ in range(30)))
    backlog.kept_bytes = made.kept_bytes
    asyncio.run(catch_up(made, backlog, [market.tokens[0].token_id]))

    assert made.kept_bytes == 0
    assert len(backlog) == 1
    backlog.add(backlog._batches[0])
    assert (len(backlog), backlog.overflow is not None) == (1, True)


def test_a_takeover_tells_of_no_progress_until_all_that_was_kept_is_written(database_url_of_file):
    now = [NOW / 1000]
    run = Run(database_url_of_file, lambda: now[0], "me", began_ms=NOW, defers=True)
    market = Market(1, random.Random(1), NOW)
    for each in market.tokens:
        run.normalizer.follow(each, 10_000)
    run.receive(array([market.book(0, NOW), market.book(1, NOW)]))
    run.receive(msgspec.json.encode(market.change(NOW, top=True)))
    run.tick(may_lead=True)
    try:
        assert run.committer.leading
        assert not run.normalizer.defers
        assert len(run.backlog) > 1
        assert {batch.exchange_ms for batch in run.backlog._batches} == {0}
        assert all(batch.sent_ms for batch in run.backlog._batches), "if they are dropped, their span is known"
    finally:
        run.close()


def test_frames_that_become_rows_do_not_count_twice():
    made, market, listener, _ = make()
    keep(made, listener, *(market.change(NOW, top=True) for _ in range(30)))
    made.catch_up([market.tokens[0].token_id])
    rows = made.cut_batch()
    made, market, listener, _ = make()
    keep(made, listener, *(market.change(NOW, top=True) for _ in range(30)))
    backlog = Backlog(rows.size + 1_000)
    backlog.add(WriteBatch(refusals=[], received_ms=NOW))
    backlog.kept_bytes = made.kept_bytes
    asyncio.run(catch_up(made, backlog, [market.tokens[0].token_id]))

    assert (len(backlog), backlog.overflow, backlog.kept_bytes) == (2, None, 0)


def test_what_a_full_ring_has_no_room_for_goes_at_the_next_tick(database_url_of_file):
    run = Run(database_url_of_file, lambda: NOW / 1000, "me", began_ms=NOW, defers=True, capacity=10_000)
    for nth in range(3):
        run.backlog.add(WriteBatch(trades=trades(5, ts_ms=NOW + nth * 100), received_ms=NOW))
    assert len(run.backlog) == 3
    run.normalizer.kept_bytes = 5_000
    run.tick(may_lead=False)
    run.close()

    assert len(run.backlog) == 1
    assert [(loss.from_ms, loss.to_ms) for loss in run.losses.all] == [(NOW, NOW + 104)]


def test_the_span_of_a_dropped_batch_has_all_that_was_parsed_late_into_it():
    made, market, listener, now = make()
    now[0] += 60
    keep(made, listener, market.book(0, NOW + 10), market.change(NOW + 20, top=True), market.book(1, NOW + 50_000))
    backlog = Backlog(100)
    asyncio.run(catch_up(made, backlog, [market.tokens[0].token_id]))
    assert backlog._batches[0].exchange_ms == 0, "rows from before an earlier batch's end"
    backlog.add(WriteBatch())

    overflow = backlog.take_overflow()
    assert overflow.from_ms == NOW + 10
    assert overflow.to_ms >= NOW + 50_000


@pytest.mark.parametrize("crossed", [False, True])
def test_a_rebuild_begins_with_no_full_book_that_was_overtaken_in_transit(crossed):
    made, market, listener, now = make()
    made.settle(NOW - 1_000)
    old = market.book(0, NOW + 5)
    market.bids[500_000], market.asks[505_000] = 5 * ONE, 5 * ONE  # the best prices have moved since
    for at_ms in (NOW + 10, NOW + 1_000, NOW + 2_000):
        now[0] = at_ms / 1000 + 0.1
        made.settle(at_ms)
        first, second = market.change(at_ms, top=False), market.book(1, at_ms)
        later = market.change(at_ms, top=True)
        book = market.book(0, at_ms)
        if crossed:
            book.asks = [outgoing.OutgoingLevel("0.01", "5"), *book.asks]
        keep(made, listener, first, second, old, later, book)
    assert made._markets[market.tokens[0].market_id.encode()].shortened
    made.settle(NOW + 10_000)
    made.catch_up([market.tokens[0].token_id])

    state = made.states[market.tokens[0].token_id]
    if crossed:
        assert state.book.state == "broken"
        assert made.mismatched == [state]
        assert market.tokens[0].token_id in made.unsynced
    else:
        assert (made.mismatched, made.counts.mismatches) == ([], 0)
        assert (state.book.bids, state.book.asks) == (market.bids, market.asks)


def test_rows_that_were_parsed_before_come_with_a_catch_up():
    made, market, listener, _ = make()
    keep(made, listener, market.change(NOW, top=True))
    made.invalidate([market.tokens[0].token_id])
    assert made.kept_bytes == 0
    backlog, turns = Backlog(ENOUGH), []
    made.catch_up = turns.append
    asyncio.run(catch_up(made, backlog, ["a token"] * 1_000))

    assert backlog.events > 0
    assert len(turns) == 1, "nothing is left to parse"


def test_without_the_setting_a_catch_up_cuts_no_batch():
    made, backlog = make_normalizer(token()), Backlog(ENOUGH)
    made.apply([trade(token())])
    asyncio.run(catch_up(made, backlog, [token().token_id]))

    assert len(backlog) == 0


def test_the_last_trade_that_is_kept_is_one_that_is_accepted():
    made, market, listener, now = make()
    made.settle(NOW - 1_000)
    first, second = (each.token_id for each in market.tokens)
    sold = next(market.trade(NOW + 1))
    sold.asset_id, sold.price = first, "0.42"
    refused = next(market.trade(NOW + 2))
    refused.asset_id, refused.price = first, "0"
    keep(made, listener, sold, refused)
    for at_ms in (NOW + 10, NOW + 1_000, NOW + 2_000):
        now[0] = at_ms / 1000 + 0.1
        made.settle(at_ms)
        keep(made, listener, market.change(at_ms, top=True), market.book(0, at_ms), market.book(1, at_ms))
    assert made._markets[market.tokens[0].market_id.encode()].shortened
    made.catch_up([first])

    assert (made.states[first].last, made.states[first].last_ms) == (420_000, NOW + 1)
    assert made.states[second].last is None


def test_a_fault_while_frames_are_parsed_leaves_clock_and_batch_as_they_were(monkeypatch):
    made, market, listener, now = make()
    exchange, batch = made.exchange, made._batch
    keep(made, listener, market.change(NOW, top=True))
    now[0] += 1
    made.settle(NOW + 1_000)
    monkeypatch.setattr(made, "_replay_settled", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        made.catch_up([market.tokens[0].token_id])

    assert (made.exchange, made._batch) == (exchange, batch)
    assert made.exchange is exchange
    assert made._batch is batch


def test_a_frame_that_cannot_be_kept_is_refused(monkeypatch):
    receiver = Receiver(Settings(_env_file=None, live_standby_defers=True), UNREACHABLE, None, run_id="me")
    monkeypatch.setattr(receiver.normalizer, "_may_keep", lambda _: 1 / 0)
    market = Market(1, random.Random(1), NOW)
    for each in market.tokens:
        receiver.normalizer.follow(each, 10_000)
    receiver.normalizer.defers = True

    assert receiver.subscriptions._keep(Socket(), msgspec.json.encode(market.change(NOW, top=True)), 5.0)
    (refusal,) = receiver.normalizer.cut_batch().refusals
    assert refusal.reason.startswith("ZeroDivisionError")


@pytest.mark.parametrize("defers", [False, True])
def test_only_a_run_that_is_configured_to_may_keep_frames(defers):
    settings = Settings(_env_file=None, live_standby_defers=defers)
    receiver = Receiver(settings, UNREACHABLE, None, run_id="me")

    assert not receiver.normalizer.defers, "not before it is known to be a standby"
    assert isinstance(receiver.normalizer, DeferringNormalizer) is defers
    assert (receiver.subscriptions._keep is not None) is defers
