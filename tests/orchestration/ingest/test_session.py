import asyncio
from contextlib import suppress
from time import monotonic
from unittest.mock import AsyncMock

import pytest

from config.settings import Settings
from orchestration.feeds.lease import ALIVE_S
from orchestration.feeds.shards import WHOLE
from orchestration.ingest.clock import MAX_SECONDS
from orchestration.ingest.exchanges.polymarket import PolymarketClient
from orchestration.ingest.progress import Turn
from orchestration.ingest.session import FETCH_S, FETCHED_AFTER_MS, FIGURES_S, PAUSE_BEGINS_MS, LiveSession
from orchestration.ingest.sockets.listener import SocketListener
from tests.orchestration.ingest.builders import NO_CALLBACKS, UNREACHABLE
from upstream.transport.errors import Unavailable

NOWHERE = "http://127.0.0.1:9"


def make_session(**settings):
    """Return a session that nothing is called of yet."""
    return LiveSession(
        Settings(_env_file=None, **settings),
        "postgresql://127.0.0.1:9/none",
        PolymarketClient(NOWHERE, NOWHERE, "ws://127.0.0.1:9/", NOWHERE),
        run_id="me",
        family="polymarket",
        shard=WHOLE,
        window_s=60.0,
        settle_s=1.0,
        observe_s=1.0,
        observed=lambda _: None,
    )


async def filled(*, unwritten_ms=0, all_lag_ms=0, committed_ago_ms=0, silent_s=0.0):
    """Return how long after its end a gap is filled, and how long ago by the exchange's clock it has to have ended.

    All messages arrive `all_lag_ms` later than at first. The last one came `silent_s` ago, and what is committed was
    sent `committed_ago_ms` before it.
    """
    session, calls = make_session(), []

    async def run_in(_thread, call, *arguments, **__):
        calls.append((call.__name__, *arguments))

    exchange = session.receiver.normalizer.exchange
    listener = SocketListener(UNREACHABLE, 1, asyncio.Semaphore(), **NO_CALLBACKS, now_ms=None)
    for late_ms in (0, *[all_lag_ms] * MAX_SECONDS):
        exchange.observe(0, late_ms)
        exchange.update(exchange._settled_ms + 1_000)
    now_ms = exchange.now_ms()
    listener.newest_ms, listener.pulse.received_at = now_ms, monotonic() - silent_s
    session.receiver.subscriptions.listeners = [listener]

    session._run_in = run_in
    session.committer.role, session.receiver.resync.ready_since = "leader", 0.0
    session.committer.written_ms = exchange.local_ms() - unwritten_ms
    session.committer.exchange_ms = now_ms - committed_ago_ms
    session._fetched_at -= FETCH_S
    await session._fill_gaps()
    (asked,) = [arguments for name, *arguments in calls if name == "from_data_api"]
    settle_s, _, ended_before_ms = asked
    ended_ago_ms = ended_before_ms and now_ms - ended_before_ms - FETCHED_AFTER_MS
    return settle_s * 1000 - FETCHED_AFTER_MS, ended_ago_ms


@pytest.mark.parametrize(
    ("unwritten_ms", "all_lag_ms", "expected_ms"), [(0, 0, 0), (60_000, 0, 60_000), (60_000, 90_000, 150_000)]
)
def test_a_gap_is_filled_from_the_data_api_once_what_was_received_around_it_is_written(
    unwritten_ms, all_lag_ms, expected_ms
):
    after_ms, _ = asyncio.run(filled(unwritten_ms=unwritten_ms, all_lag_ms=all_lag_ms))

    assert expected_ms <= after_ms < expected_ms + 30_000


@pytest.mark.parametrize("committed_ago_ms", [0, 500_000])
def test_a_gap_is_filled_once_what_the_exchange_sent_around_it_is_committed_however_old_it_is_by_our_clock(
    committed_ago_ms,
):
    _, ended_ago_ms = asyncio.run(filled(committed_ago_ms=committed_ago_ms))

    assert ended_ago_ms == committed_ago_ms


def test_while_no_socket_delivers_anything_the_exchanges_timestamps_do_not_delay_a_fill():
    _, ended_ago_ms = asyncio.run(filled(committed_ago_ms=500_000, silent_s=11.0))

    assert ended_ago_ms is None


def test_a_run_that_lost_the_lead_ends_its_fill_so_that_it_can_take_the_lead_again():
    async def filling_may_go_on(role):
        session = make_session()
        session.committer.role = role
        session.committer.tick = AsyncMock(side_effect=lambda **_: session.ending.set())
        await session._tick()
        return not session.filler.stopped

    assert asyncio.run(filling_may_go_on("leader"))
    assert not asyncio.run(filling_may_go_on("standby"))


def answers(name, *, leads=True):
    """Return what the database answers to a call of a run."""
    return {"turn": Turn(may_lead=True, over=False), "leads": leads}.get(name, [])


@pytest.mark.parametrize("step", ["beat", "end"])
@pytest.mark.parametrize("leads", [True, False])
def test_a_run_that_has_not_noticed_that_it_has_lost_the_lead_is_told_by_the_database(step, leads):
    async def called():
        session, calls = make_session(), []

        async def run_in(_thread, call, *arguments, **__):
            calls.append(name := getattr(call, "func", call).__name__)
            if name == "beat":
                roles.append(arguments[0])
            if name == "leads":
                assert arguments == (431,)
            return answers(name, leads=leads)

        session._run_in, session._lease.database_ms = run_in, session.receiver.normalizer.exchange.local_ms
        session._stats_at -= FIGURES_S
        session.committer.role, session.leader.pid = "leader", 431
        if step == "beat":
            await session._beat()
        else:
            await session._end(asyncio.create_task(asyncio.sleep(0)), [])
        assert session.committer.leading == leads
        return calls

    roles = []
    of_a_leader = {"beat": {"<lambda>", "check_starts", "stats"}, "end": {"<lambda>"}}[step]  # the first writes losses

    assert of_a_leader & {*asyncio.run(called())} == (of_a_leader if leads else set())
    assert roles == [{"beat": "leader" if leads else "standby", "end": "gone"}[step]]


def test_a_run_that_has_taken_the_lead_again_while_it_asked_keeps_it():
    async def leading():
        session = make_session()

        async def run_in(*_, **__):
            session.leader.pid = 432
            return False

        session._run_in = run_in
        session.committer.role, session.leader.pid = "leader", 431
        await session._check_lead()
        return session.committer.leading

    assert asyncio.run(leading())


@pytest.mark.parametrize("meanwhile", [None, "lost", "taken over", "led again"])
def test_starts_left_at_the_takeover_hold_progress_back_until_they_are_seen_to_in_the_same_lead(meanwhile):
    async def unseen_ms():
        session = make_session()

        async def run_in(_thread, call, *_, **__):
            name = getattr(call, "func", call).__name__
            if name == "check_starts":
                session.committer.led_ms += meanwhile == "led again"
                session.committer.role = "standby" if meanwhile in ("lost", "taken over") else "leader"
                session.committer.taking_over = meanwhile == "taken over"
            return answers(name)

        session._run_in, session._lease.database_ms = run_in, session.receiver.normalizer.exchange.local_ms
        session.committer.role, session.committer.unseen_ms = "leader", 5
        await session._beat()
        assert session.committer._heard_at >= began, "it is in touch with the database"
        return session.committer.unseen_ms

    began = monotonic()
    assert asyncio.run(unseen_ms()) == (5 if meanwhile else None)


@pytest.mark.parametrize(("touched_ago_s", "silent_count"), [(0, True), (ALIVE_S, False)])
def test_runs_of_another_number_of_shards_may_be_silent_until_this_one_has_been_in_touch(touched_ago_s, silent_count):
    async def asked():
        session, asked = make_session(), []

        async def run_in(_thread, call, *_, **named):
            name = getattr(call, "func", call).__name__
            asked.extend([named["silent_count"]] if name == "turn" else [])
            return answers(name)

        session._run_in, session._lease.database_ms = run_in, session.receiver.normalizer.exchange.local_ms
        session.committer._heard_at, session.committer._in_touch_since = monotonic(), monotonic() - touched_ago_s
        await session._beat()
        return asked

    assert asyncio.run(asked()) == [silent_count]


@pytest.mark.parametrize("counts", [True, False])
def test_the_first_figures_which_say_since_when_there_is_a_record_wait_until_recording_counts(counts):
    async def called():
        session, calls = make_session(), []

        async def run_in(_thread, call, *_, **__):
            calls.append(name := getattr(call, "func", call).__name__)
            return answers(name)

        exchange = session.receiver.normalizer.exchange
        session._run_in, session._lease.database_ms = run_in, exchange.local_ms
        session._stats_at -= FIGURES_S
        session.committer.role = "leader"
        session.committer.led_since_ms = exchange.now_ms() + (0 if counts else 60_000)
        await session._beat()
        return calls

    assert ("stats" in asyncio.run(called())) == counts


def test_recording_does_not_count_from_a_moment_at_which_books_that_are_late_were_not_yet_a_gap():
    async def called():
        session, calls = make_session(), []
        exchange = session.receiver.normalizer.exchange
        now_ms = exchange.now_ms()

        async def run_in(_thread, call, *_, **__):
            calls.append(name := getattr(call, "func", call).__name__)
            if name == "<lambda>":  # the losses are written, which takes a second
                exchange.now_ms = lambda: now_ms + 1_000
            return answers(name)

        exchange.now_ms = lambda: now_ms
        session._run_in, session._lease.database_ms = run_in, exchange.local_ms
        session._stats_at -= FIGURES_S
        session.committer.role, session.committer.led_since_ms = "leader", now_ms + 10
        await session._beat()
        return calls

    assert "<lambda>" in asyncio.run(called())
    assert "stats" not in asyncio.run(called())


class Paused:
    """A session that has been silent for half a minute, whose exchange is asked whether trading is paused."""

    def __init__(self, *answers):
        self.session = make_session()
        self.listener = SocketListener(NOWHERE, 1, asyncio.Semaphore(), now_ms=int, **NO_CALLBACKS)
        self.listener.pulse.received_at = monotonic() - 30
        self.listener.newest_ms = self.session.receiver.normalizer.exchange.local_ms() - 30_000
        self.session.receiver.subscriptions.listeners = [self.listener]
        self.session.receiver.resync.ready_since = 0.0
        self.session._run_in = AsyncMock(side_effect=answers)

    async def look(self):
        await self.session._look_for_pause()
        return bool(self.session._paused_ms)


@pytest.mark.parametrize("heard", [False, True])
def test_without_an_answer_a_pause_lasts_until_something_comes(heard):
    async def looked():
        paused = Paused(True, Unavailable("away"))
        began = await paused.look()
        if heard:
            paused.listener.pulse.received_at = monotonic()
        with suppress(Unavailable):
            await paused.look()
        return began, bool(paused.session._paused_ms)

    assert asyncio.run(looked()) == (True, not heard)


def test_a_message_does_not_end_a_pause_that_the_exchange_confirms():
    async def looked():
        paused = Paused(True, True, False)
        began = await paused.look()
        paused.listener.pulse.received_at = monotonic()
        return began, await paused.look(), await paused.look()

    assert asyncio.run(looked()) == (True, True, False)


@pytest.mark.parametrize("since_ms", [30_000, 3_600_000], ids=["since it took over", "for longer than it was there"])
def test_a_run_that_takes_over_during_a_pause_asks_only_if_it_heard_the_time_before(since_ms):
    async def looked():
        paused = Paused(True)
        paused.listener.newest_ms = paused.session.receiver.normalizer.exchange.local_ms() - since_ms
        return await paused.look()

    assert asyncio.run(looked()) == (since_ms < PAUSE_BEGINS_MS)


@pytest.mark.parametrize("taking_over", [True, False])
def test_a_market_followed_while_the_lead_is_being_taken_may_begin_with_a_gap(taking_over):
    async def begun():
        session = make_session()
        subscriptions = session.receiver.subscriptions
        subscriptions.loaded, subscriptions.add = True, lambda *_, **__: {7}
        session._run_in = AsyncMock(side_effect=[([("a token",)], False), {}])
        session.committer.taking_over = taking_over
        await session._refresh_tokens()
        return session.receiver.starts.begun

    assert asyncio.run(begun()) == ({7} if taking_over else set())


@pytest.mark.parametrize(
    ("buffer_mb", "bounds"),
    [(0, (256_000_000 + 400_000 * 2_000, 128_000_000)), (64, (64_000_000, 32_000_000))],
)
def test_messages_held_in_memory_are_bounded_by_the_tokens_followed_or_by_the_setting(buffer_mb, bounds):
    async def bounded():
        session = make_session(live_buffer_mb=buffer_mb)
        session.receiver.subscriptions.add = lambda *_, **__: set()
        session.receiver.subscriptions.complete = lambda _: None
        session._run_in = AsyncMock(side_effect=[([("a token",)] * 400_000, True), {}])
        await session._refresh_tokens()
        return session.backlog.capacity, session.receiver.normalizer._max_kept_bytes

    assert asyncio.run(bounded()) == bounds
