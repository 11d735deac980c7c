from tests.upstream.kalshi.samples import frame
from upstream.kalshi.socket.frames import parse
from upstream.kalshi.socket.session import KalshiSession

TS = 1781159489957


class Talk:
    """A session, its clock, and what the exchange says in it."""

    def __init__(self, tickers=("A", "B"), channels=("orderbook_delta",), everywhere=()):
        self.session = KalshiSession(tickers, channels, everywhere)
        self.now = 1000.0
        self.session.begin(self.now)

    def commands(self):
        return [(each["cmd"], each["params"]) for each in self.session.commands()]

    def hear(self, *messages):
        """Return the events of these messages."""
        return [event for message in messages for event in self.session.apply(parse(frame(message)), self.now)]

    def wait(self, seconds):
        self.now += seconds
        return self.session.tick(self.now)

    def acknowledge(self, *sids, first=1):
        """Answer the open commands: the channels of each get these sids in turn."""
        numbers = iter(sids)
        for command in self.session.commands():
            for channel in command["params"]["channels"]:
                sid = next(numbers)
                assert (
                    self.hear({"type": "subscribed", "id": command["id"], "msg": {"channel": channel, "sid": sid}})
                    == []
                )

    def book(self, ticker):
        found = self.session.books.get(ticker)
        return None if found is None else (found.whole(ticker).yes, found.whole(ticker).no)


def snapshot(ticker, seq, yes=(), no=(), sid=1):
    sides = {"yes_dollars_fp": [list(level) for level in yes], "no_dollars_fp": [list(level) for level in no]}
    body = {"market_ticker": ticker, **{name: side for name, side in sides.items() if side}}
    return {"type": "orderbook_snapshot", "sid": sid, "seq": seq, "msg": body}


def delta(ticker, seq, change="1.00", price="0.4000", side="yes", sid=1):
    body = {"market_ticker": ticker, "price_dollars": price, "delta_fp": change, "side": side, "ts_ms": TS}
    return {"type": "orderbook_delta", "sid": sid, "seq": seq, "msg": body}


def talking(*messages, **options):
    """Return a talk in which the book channel of A and B is subscribed to as sid 1, and these messages have come."""
    talk = Talk(**options)
    talk.acknowledge(1)
    talk.hear(*messages)
    talk.commands()
    return talk


ANCHORED = (snapshot("A", 1, [("0.40", "3.00")]), snapshot("B", 2, [], [("0.55", "1.00")]))


def kinds(events):
    return [type(event) for event in events]


def wanting(talk, *tickers):
    """Want these markets; return the commands that follow from it."""
    talk.session.subscriptions.wanted = dict.fromkeys(tickers)
    talk.session.begin(talk.now)
    return talk.session.commands()
