"""A connection to Kalshi, whose other side the test plays: what is yielded, and what is said to be missing."""

import asyncio
import contextlib
import json

import pytest

from orchestration.ingest.exchanges.kalshi_connection import MARGIN_MS, MAX_EARLY_MS, MAX_OFF_MS, KalshiConnection
from orchestration.ingest.storage import ids
from tests.patience import PATIENCE_S
from tests.upstream.kalshi.conversations import exchange, place, signer
from tests.upstream.kalshi.samples import frame
from upstream.kalshi.socket import conversation, subscriptions
from upstream.polymarket.market_channel.messages import Book, LastTrade, LevelChange, NewMarket, Resolved, Unknown
from upstream.transport.errors import RefusedObject, SocketLost, SubscriptionRefused

NOW_MS = 1_795_000_000_000
A, B = "KXFED-27APR-T4.25", "KXRAIN-26NOV27"
TRADES_SID, BOOKS_SID, LIFE_SID = 1, 2, 3


class Exchange:
    """The exchange's side of one connection: it confirms what is asked for, and sends what the test says."""

    def __init__(self, socket, *, refused=()):
        self.socket, self.commands = socket, []
        self._seq = {}
        self._refused = refused

    async def answer(self, count):
        """Answer so many commands."""
        for _ in range(count):
            command = json.loads(await asyncio.wait_for(self.socket.recv(), PATIENCE_S))
            self.commands.append(command)
            if command["cmd"] == "subscribe":
                await self._subscribed(command)
            elif command["cmd"] == "update_subscription":
                params = command["params"]
                if params["action"] in self._refused:
                    await self.refuse(command)
                elif params["action"] != "get_snapshot":
                    body = {"type": "ok", "id": command["id"], "msg": {"market_tickers": [A, B]}}
                    await self.send(body, params["sids"][0])

    async def _subscribed(self, command):
        for channel in command["params"]["channels"]:
            if channel in self._refused:
                await self.refuse(command)
                continue
            sid = {"trade": TRADES_SID, "orderbook_delta": BOOKS_SID}.get(channel, LIFE_SID)
            self._seq[sid] = 0
            body = {"type": "subscribed", "id": command["id"], "msg": {"channel": channel, "sid": sid}}
            await self.socket.send(frame(body).decode())

    async def refuse(self, command, code=26):
        body = {"type": "error", "id": command["id"], "msg": {"code": code, "msg": "Market limit"}}
        await self.socket.send(frame(body).decode())

    async def send(self, message, sid, skip=0):
        self._seq[sid] += 1 + skip
        await self.socket.send(place(message, self._seq[sid], sid))

    async def snapshot(self, ticker=A, yes=(("0.4000", "10.00"),), no=(("0.5000", "5.00"),), skip=0, **more):
        msg = {"market_ticker": ticker, "yes_dollars_fp": list(yes), "no_dollars_fp": list(no)}
        await self.send({"type": "orderbook_snapshot", "msg": msg, **more}, BOOKS_SID, skip)

    async def delta(self, ticker=A, price="0.4000", delta="1.00", ts_ms=NOW_MS, skip=0):
        msg = {"market_ticker": ticker, "price_dollars": price, "delta_fp": delta, "side": "yes", "ts_ms": ts_ms}
        await self.send({"type": "orderbook_delta", "msg": msg}, BOOKS_SID, skip)

    async def trade(self, number=1, ts_ms=NOW_MS, skip=0, **more):
        msg = {
            "trade_id": f"{number:08x}-ee49-470d-82d8-11418bda6fed",
            "market_ticker": A,
            "yes_price_dollars": "0.3600",
            "no_price_dollars": "0.6400",
            "count_fp": "136.00",
            "taker_outcome_side": "no",
            "ts_ms": ts_ms,
        }
        await self.send({"type": "trade", "msg": msg | more}, TRADES_SID, skip)

    async def life(self, **msg):
        await self.send({"type": "market_lifecycle_v2", "msg": {"market_ticker": B, **msg}}, LIFE_SID)

    async def bye(self):
        await self.socket.close()


def heard(play, *, tickers=(A,), news=False, refused=(), during=None):
    """Return what a connection yields, and what it says is missing, until the exchange closes it.

    `missed` has, for each, how many messages were yielded before.
    """

    async def side(socket):
        with contextlib.suppress(ConnectionError):
            await play(Exchange(socket, refused=refused))

    async def listen():
        found, missed = [], []
        async with exchange(side) as url:
            tokens = [f"{ticker}:{outcome}" for ticker in tickers for outcome in ("yes", "no")]
            made = KalshiConnection(
                signer(),
                url,
                tokens,
                news=news,
                on_missed=lambda each: missed.append((len(found), each)),
                now_ms=lambda: NOW_MS,
            )
            await made.__aenter__()
            try:
                async for _, messages in made:
                    found.extend(messages)
                    if during is not None:
                        await during(made, messages)
            except SocketLost:
                return found, missed
            finally:
                await made.close()
        raise AssertionError("it ended without a reason")

    return asyncio.run(asyncio.wait_for(listen(), 2 * PATIENCE_S))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(conversation, "TICK_S", 0.02)
    monkeypatch.setattr(subscriptions, "MIN_REQUEST_S", 0.0)


def test_both_outcomes_have_each_book_and_each_change():
    async def play(side):
        await side.answer(1)
        await side.snapshot(sending_ts_ms=NOW_MS - 7)
        await side.delta(ts_ms=NOW_MS - 9)
        await side.bye()

    found, missed = heard(play)

    assert found == [
        Book(f"{A}:yes", A, NOW_MS - 7, "", [(400_000, 10_000_000)], [(500_000, 5_000_000)]),
        Book(f"{A}:no", A, NOW_MS - 7, "", [(500_000, 5_000_000)], [(600_000, 10_000_000)]),
        LevelChange(f"{A}:yes", A, NOW_MS - 9, "", 1, 400_000, 11_000_000),
        LevelChange(f"{A}:no", A, NOW_MS - 9, "", -1, 600_000, 11_000_000),
    ]
    assert missed == []


def test_a_trade_is_one_of_yes_with_the_exchanges_id():
    async def play(side):
        await side.answer(1)
        await side.trade()
        await side.trade(2, is_block_trade=True)
        await side.bye()

    (one, block), _ = heard(play)

    number = ids.trade_id("00000001-ee49-470d-82d8-11418bda6fed")
    assert one == LastTrade(f"{A}:yes", A, NOW_MS, -1, 360_000, 136_000_000, trade_id=number)
    assert block.is_block


@pytest.mark.parametrize("sent_ms", [None, NOW_MS + MAX_OFF_MS, NOW_MS - MAX_OFF_MS])
def test_a_snapshot_whose_time_is_missing_or_far_off_has_ours(sent_ms):
    async def play(side):
        await side.answer(1)
        await side.snapshot(**({} if sent_ms is None else {"sending_ts_ms": sent_ms}))
        await side.bye()

    found, _ = heard(play)

    assert [book.ts_ms for book in found] == [NOW_MS, NOW_MS]


def test_lost_changes_are_said_before_what_came_after_and_the_books_come_anew():
    async def play(side):
        await side.answer(1)
        await side.snapshot(A)
        await side.snapshot(B)
        await side.delta(A, ts_ms=NOW_MS - 500)
        await side.delta(B, skip=1)  # which of the two missed something is not known
        await side.answer(1)
        assert sorted(side.commands[-1]["params"]["market_tickers"]) == [A, B]
        await side.snapshot(A)
        await side.snapshot(B)
        await side.delta(B)
        await side.bye()

    found, missed = heard(play, tickers=(A, B))

    ((before, lost),) = missed
    assert before == 6
    assert (lost.cause, lost.kinds, lost.books) == ("sequence", ("books",), True)
    assert sorted(lost.token_ids) == [f"{A}:no", f"{A}:yes", f"{B}:no", f"{B}:yes"]
    assert lost.from_ms == NOW_MS - 500 - MARGIN_MS
    assert [type(each) for each in found[6:]] == [Book] * 4 + [LevelChange] * 2


def test_lost_trades_leave_the_books_as_they_are():
    async def play(side):
        await side.answer(1)
        await side.snapshot()
        await side.trade(1, ts_ms=NOW_MS - 400)
        await side.trade(2, skip=1)
        await side.delta()
        await side.bye()

    found, missed = heard(play)

    ((before, lost),) = missed
    assert (before, lost.kinds, lost.books, lost.from_ms) == (3, ("trades",), False, NOW_MS - 400 - MARGIN_MS)
    assert [type(each) for each in found[3:]] == [LastTrade, LevelChange, LevelChange]


def test_books_wait_until_the_exchange_confirms_that_it_sends_their_trades():
    async def play(side):
        await side.answer(1)
        await side.snapshot(A)
        command = json.loads(await side.socket.recv())
        books = json.loads(await side.socket.recv())
        if command["params"]["sids"] == [BOOKS_SID]:
            command, books = books, command
        await side.send({"type": "ok", "id": books["id"], "msg": {"market_tickers": [A, B]}}, BOOKS_SID)
        await side.snapshot(B)
        await side.delta(B)
        await side.send({"type": "ok", "id": command["id"], "msg": {"market_tickers": [A, B]}}, TRADES_SID)
        await side.bye()

    async def follow(made, messages):
        if any(type(each) is Book and each.market == A for each in messages):
            await made.subscribe([f"{B}:yes", f"{B}:no"])

    found, missed = heard(play, during=follow)

    assert [(type(each), each.market) for each in found] == [(Book, A)] * 2 + [(Book, B)] * 2
    assert found[2].bids == [(400_000, 11_000_000)], "with what has changed meanwhile"
    assert missed == []


def test_trades_that_the_exchange_does_not_send_are_said_and_no_book_counts_without_them():
    async def play(side):
        await side.answer(1)
        await side.snapshot(A)
        await side.answer(2)
        await side.snapshot(B)
        await side.delta(B)
        await side.bye()

    async def follow(made, messages):
        if any(type(each) is Book and each.market == A for each in messages):
            await made.subscribe([f"{B}:yes", f"{B}:no"])

    found, missed = heard(play, during=follow, refused=("add_markets",))

    assert missed == [], "nothing of it counted yet: its start is a gap until its books are there"
    assert [each.market for each in found if isinstance(each, Book)] == [A, A]
    assert [each.reason for each in found if isinstance(each, RefusedObject)] == [
        "the exchange refuses a command: 26 Market limit"
    ] * 2


def test_a_subscription_of_trades_that_ends_is_a_loss_of_everything_until_it_is_there_again(monkeypatch):
    monkeypatch.setattr(subscriptions, "FIRST_RETRY_S", 0.0)

    async def play(side):
        await side.answer(1)
        await side.snapshot()
        await side.send({"type": "error", "msg": {"code": 25, "msg": "Buffer overflow"}}, TRADES_SID)
        commands = [json.loads(await side.socket.recv()) for _ in range(2)]
        snapshot = next(each for each in commands if each["cmd"] == "update_subscription")
        assert snapshot["params"]["action"] == "get_snapshot"
        again = next(each for each in commands if each["cmd"] == "subscribe")
        await side.snapshot()  # the book is there before the trades are
        await side._subscribed(again)
        await side.bye()

    found, missed = heard(play)

    ((before, lost),) = missed
    assert (before, lost.kinds, lost.books) == (2, ("books", "trades"), True)
    assert [type(each) for each in found] == [Book] * 4


def test_a_channel_that_is_refused_ends_the_connection_with_the_reason():
    async def play(side):
        await side.answer(1)
        await side.socket.wait_closed()

    async def listen():
        async with exchange(lambda socket: play(Exchange(socket, refused=("trade",)))) as url:
            made = KalshiConnection(
                signer(), url, [f"{A}:yes"], news=False, on_missed=lambda _: None, now_ms=lambda: NOW_MS
            )
            async with contextlib.AsyncExitStack() as stack:
                await made.__aenter__()
                stack.push_async_callback(made.close)
                async for _ in made:
                    pass

    with pytest.raises(SubscriptionRefused, match="26 Market limit"):
        asyncio.run(asyncio.wait_for(listen(), PATIENCE_S))


def test_what_cannot_be_converted_ends_the_connection_and_not_the_feed(monkeypatch):
    monkeypatch.setattr(KalshiConnection, "_trade", lambda *_: 1 / 0)

    async def play(side):
        await side.answer(1)
        await side.trade()
        await side.bye()

    assert heard(play) == ([], [])


def test_a_gap_begins_no_later_than_now():
    async def play(side):
        await side.answer(1)
        await side.trade(1, ts_ms=NOW_MS + MAX_EARLY_MS)
        await side.trade(2, skip=1)
        await side.bye()

    ((_, lost),) = heard(play)[1]

    assert lost.from_ms == NOW_MS - MARGIN_MS


@pytest.mark.parametrize("ts_ms", [NOW_MS + 11_000, 1])
def test_a_change_at_an_impossible_time_is_refused_and_its_book_comes_anew(ts_ms):
    async def play(side):
        await side.answer(1)
        await side.snapshot()
        await side.delta(ts_ms=ts_ms)
        await side.answer(1)
        assert side.commands[-1]["params"]["market_tickers"] == [A]
        await side.snapshot()
        await side.bye()

    found, missed = heard(play)

    assert [type(each) for each in found] == [Book, Book, RefusedObject, Book, Book]
    ((_, lost),) = missed
    assert lost.from_ms == NOW_MS - MARGIN_MS


def test_news_are_heard_on_the_connection_that_asks_for_them():
    async def play(side):
        await side.answer(2)
        metadata = {"title": "Rain?", "event_ticker": "KXRAIN"}
        await side.life(event_type="created", open_ts=1, close_ts=2, additional_metadata=metadata)
        await side.life(event_type="activated", is_deactivated=False)
        await side.life(event_type="determined", result="yes", determination_ts=1_784_501_722)
        await side.bye()

    (new, determined), _ = heard(play, news=True)

    assert (new.market, new.question, new.token_ids) == (B, "Rain?", [f"{B}:yes", f"{B}:no"])
    assert isinstance(new, NewMarket)
    assert isinstance(determined, Resolved)
    assert determined.market == B


def test_a_kind_that_is_not_known_is_counted():
    async def play(side):
        await side.answer(1)
        await side.socket.send(frame({"type": "weather", "msg": {}}).decode())
        await side.bye()

    assert heard(play) == ([Unknown("weather")], [])


def test_without_a_key_the_connection_says_what_is_missing():
    async def open_it():
        made = KalshiConnection(
            None, "ws://127.0.0.1:9/", [f"{A}:yes"], news=False, on_missed=None, now_ms=lambda: NOW_MS
        )
        await made.__aenter__()

    with pytest.raises(SocketLost, match="PRESAGE_KALSHI_KEY_ID"):
        asyncio.run(open_it())
