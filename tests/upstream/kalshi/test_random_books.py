import itertools
import random
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from tests.upstream.kalshi import samples
from tests.upstream.kalshi.talk import Talk, delta, snapshot, talking
from upstream.kalshi.socket.events import (
    BookAnchored,
    BookChange,
    SequenceGap,
)
from upstream.transport.errors import SocketLost


class LossyExchange:
    """Markets of an exchange, in exact decimals; some of its frames are lost, repeated or come again much later."""

    def __init__(self, dice, tickers):
        self.dice = dice
        self.books = {ticker: ({}, {}) for ticker in tickers}
        self.seq = 0
        self.sent = []
        self.states = {0: self.state()}

    def state(self):
        return {ticker: tuple(dict(side) for side in sides) for ticker, sides in self.books.items()}

    def say(self, message):
        self.seq += 1
        self.sent.append(message | {"sid": 1, "seq": self.seq})
        self.states[self.seq] = self.state()

    def snapshot(self, ticker):
        sides = ([(f"{price:.4f}", f"{size:.2f}") for price, size in side.items()] for side in self.books[ticker])
        yes, no = (self.dice.sample(side, len(side)) for side in sides)
        self.say(snapshot(ticker, 0, yes, no))

    def trade(self):
        ticker = self.dice.choice([*self.books])
        name, side = self.dice.choice([("yes", self.books[ticker][0]), ("no", self.books[ticker][1])])
        price = Decimal(self.dice.randint(1, 30)) / 100
        have = side.get(price, Decimal(0))
        change = self.dice.choice([-have, -have / 2, Decimal(self.dice.randint(1, 500)) / 100]).quantize(
            Decimal("0.01")
        )
        change = max(change, -have) or Decimal("0.25")
        side[price] = have + change
        if not side[price]:
            del side[price]
        self.say(delta(ticker, 0, f"{change:.2f}", f"{price:.4f}", name))


class Consumer:
    """Books by what the events say alone."""

    def __init__(self):
        self.books = {}

    def take(self, events):
        for event in events:
            if isinstance(event, BookAnchored):
                self.books[event.ticker] = (dict(event.yes), dict(event.no))
            elif isinstance(event, BookChange):
                self.books[event.ticker][event.side][event.price] = event.size
                if not event.size:
                    del self.books[event.ticker][event.side][event.price]
            elif isinstance(event, SequenceGap):
                for ticker in event.tickers:
                    del self.books[ticker]


def micro(sides):
    return tuple({int(price * 10**6): int(size * 10**6) for price, size in side.items()} for side in sides)


def connect(exchange, tickers):
    """Return a talk on a new connection, with the first snapshots on their way."""
    talk = Talk(tickers)
    talk.acknowledge(1)
    exchange.seq, exchange.sent, exchange.states = 0, [], {0: exchange.state()}
    for ticker in tickers:
        exchange.snapshot(ticker)
    return talk


def answer(talk, exchange):
    for _, params in talk.commands():
        assert params["action"] == "get_snapshot"
        for ticker in params["market_tickers"]:
            exchange.snapshot(ticker)


@given(st.integers(0, 2**32))
def test_random_history_of_books_with_losses_repeats_and_disconnects_equals_an_oracle(seed):
    dice = random.Random(seed)
    tickers = [f"M-{number}" for number in range(dice.randint(1, 4))]
    exchange = LossyExchange(dice, tickers)
    losses = dice.choice([0.0, 0.02, 0.2])
    gaps = 0
    for _ in range(3):  # connections
        talk, consumer = connect(exchange, tickers), Consumer()
        delivered = 0
        for _ in range(dice.randint(0, 120)):
            exchange.trade()
            while exchange.sent and dice.random() < 0.7:
                message = exchange.sent.pop(0)
                if dice.random() < losses:
                    continue
                events = []
                for each in [message] * dice.choice([1, 1, 1, 2]):
                    talk.now += 0.1
                    events += talk.hear(each)
                consumer.take(events)
                lost = message["seq"] != delivered + 1
                assert lost == any(isinstance(event, SequenceGap) for event in events)
                gaps += lost
                delivered = message["seq"]
                assert_as_sent(talk, consumer, exchange.states[delivered])
            answer(talk, exchange)
    # Whatever was lost: once nothing is lost any more, all books are there and right. A loss shows by what comes after.
    exchange.trade()
    for _ in range(100):
        for message in exchange.sent:
            talk.hear(message)
        exchange.sent = []
        talk.wait(1)
        answer(talk, exchange)
        if len(talk.session.books) == len(tickers):
            break
    assert {ticker: talk.session.books[ticker].sides for ticker in tickers} == {
        ticker: micro(sides) for ticker, sides in exchange.books.items()
    }
    assert losses or not gaps


def assert_as_sent(talk, consumer, state):
    """Each valid book is what the exchange's was at that message, and what the events said."""
    books = {ticker: book.sides for ticker, book in talk.session.books.items()}
    assert consumer.books == books
    for ticker, sides in books.items():
        assert sides == micro(state[ticker])


@given(st.integers(0, 2**32))
def test_random_history_in_any_order_never_raises_and_reports_what_it_does_not_use(seed):
    dice = random.Random(seed)
    talk = talking()
    messages = [
        *(samples.FRAMES),
        *(snapshot(ticker, seq) for ticker, seq in itertools.product("AB", (1, 2, 5))),
        *(delta(ticker, seq) for ticker, seq in itertools.product("AB", (1, 2, 3, 6))),
    ]
    for _ in range(40):
        message = dict(dice.choice(messages))
        if dice.random() < 0.5:
            message["sid"] = dice.choice([0, 1, 2])
            known = talk.session.subscriptions.by_sid.get(1)
            message["seq"] = dice.choice([0, known.seq + 1 if known else 1, 7])
        try:
            events = talk.hear(message) + talk.wait(0.1)
        except SocketLost:
            return
        if message["type"] in {"orderbook_snapshot", "orderbook_delta", "trade", "ticker"}:
            assert events, message
