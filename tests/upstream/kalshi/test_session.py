import itertools
import random
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.upstream.kalshi import samples
from tests.upstream.kalshi.samples import frame
from upstream.kalshi.socket.events import (
    BookAnchored,
    BookChange,
    CommandRefused,
    Dropped,
    SequenceGap,
    SnapshotsRequested,
)
from upstream.kalshi.socket.frames import parse
from upstream.kalshi.socket.messages import UnknownKind
from upstream.kalshi.socket.session import KalshiSession
from upstream.kalshi.socket.subscriptions import MAX_TICKERS_PER_COMMAND
from upstream.transport.errors import RefusedObject, SocketLost

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


# --- Subscriptions ---


def test_everything_wanted_is_subscribed_to_with_the_price_flag_said():
    talk = Talk(channels=("orderbook_delta", "trade"), everywhere=("market_lifecycle_v2",))

    assert talk.commands() == [
        ("subscribe", {"channels": ["market_lifecycle_v2"], "use_yes_price": False}),
        (
            "subscribe",
            {"channels": ["orderbook_delta", "trade"], "use_yes_price": False, "market_tickers": ["A", "B"]},
        ),
    ]
    assert talk.wait(5) == []
    assert talk.commands() == []


def test_without_markets_nothing_is_subscribed_to_that_would_be_the_whole_exchange():
    talk = Talk(tickers=(), channels=("ticker", "trade"))
    assert talk.commands() == []

    talk.session.subscriptions.wanted["A"] = None
    talk.session.begin(talk.now)
    [(_, params)] = talk.commands()
    assert params["market_tickers"] == ["A"]


def test_each_channel_is_acknowledged_by_itself_and_counts_by_itself():
    talk = Talk(channels=("orderbook_delta", "trade"))
    talk.acknowledge(7, 9)

    assert kinds(talk.hear(snapshot("A", 1, sid=7))) == [BookAnchored]
    trade = samples.SOCKET_TRADE | {"sid": 9, "seq": 1}
    [read] = talk.hear(trade)
    assert read == parse(frame(trade)).message


def test_acknowledgements_that_nobody_asked_for_are_dropped_and_said():
    talk = Talk()
    [command] = talk.session.commands()
    odd = [
        {"type": "subscribed", "id": 99, "msg": {"channel": "orderbook_delta", "sid": 1}},
        {"type": "subscribed", "id": command["id"], "msg": {"channel": "fill", "sid": 1}},
    ]

    assert [event.reason for event in talk.hear(*odd)] == ["not asked for"] * 2
    assert [event.reason for event in talk.hear(snapshot("A", 1))] == ["no such subscription"]


def test_a_command_that_is_not_answered_ends_the_connection():
    talk = Talk()

    assert talk.wait(9) == []
    with pytest.raises(SocketLost, match="not answered"):
        talk.wait(1.1)


def test_many_markets_are_added_in_portions():
    names = [f"M-{number}" for number in range(2 * MAX_TICKERS_PER_COMMAND + 1)]
    talk = Talk(tickers=names)
    talk.acknowledge(1)

    assert [(name, params["action"], len(params["market_tickers"])) for name, params in talk.commands()] == [
        ("update_subscription", "add_markets", MAX_TICKERS_PER_COMMAND),
        ("update_subscription", "add_markets", 1),
    ]


def test_markets_are_added_and_deleted_while_it_runs():
    talk = talking(*ANCHORED)
    talk.session.subscriptions.wanted = dict.fromkeys(["B", "C"])
    talk.session.begin(talk.now)
    added, deleted = talk.session.commands()

    assert added["params"] == {"sids": [1], "market_tickers": ["C"], "action": "add_markets"}
    assert deleted["params"] == {"sids": [1], "market_tickers": ["A"], "action": "delete_markets"}
    assert talk.book("A") is None
    assert (
        talk.hear({"type": "ok", "id": added["id"], "sid": 1, "seq": 3, "msg": {"market_tickers": ["A", "B", "C"]}})
        == []
    )
    assert [event.reason for event in talk.hear(delta("A", 4), snapshot("A", 5))] == ["no snapshot yet", "not followed"]
    assert kinds(talk.hear(snapshot("C", 6), delta("C", 7), delta("B", 8))) == [BookAnchored, BookChange, BookChange]


def test_without_any_market_left_the_subscription_ends():
    talk = talking(*ANCHORED)
    talk.session.subscriptions.wanted = {}
    talk.session.begin(talk.now)
    [command] = talk.session.commands()

    assert (command["cmd"], command["params"]) == ("unsubscribe", {"sids": [1]})
    assert talk.session.books == {}
    assert talk.hear({"type": "unsubscribed", "id": command["id"], "sid": 1, "seq": 3}) == []
    assert talk.wait(60) == []


def test_markets_that_the_exchange_does_not_add_are_said_and_not_asked_for_again():
    talk = talking(*ANCHORED)
    talk.session.subscriptions.wanted.update(dict.fromkeys("CDE"))
    talk.session.begin(talk.now)
    [command] = talk.session.commands()
    listed = {"type": "ok", "id": command["id"], "sid": 1, "seq": 3, "msg": {"market_tickers": ["A", "B", "D"]}}
    [refusal] = talk.hear(listed)

    assert (refusal.channels, refusal.tickers) == ([], ["C", "E"])
    assert talk.wait(9) == []
    assert talk.commands() == []


def test_a_refused_command_is_said_with_what_it_asked_for():
    talk = Talk(channels=("orderbook_delta", "trade"))
    [command] = talk.session.commands()
    error = {"type": "error", "id": command["id"], "msg": {"code": 26, "msg": "Market limit"}}

    assert talk.hear(error) == [CommandRefused(26, "Market limit", ["orderbook_delta", "trade"], ["A", "B"])]
    assert talk.wait(3600) == []
    assert talk.commands() == []


def test_a_channel_that_is_acknowledged_after_its_own_refusal_is_not_asked_for_again():
    talk = Talk()
    [command] = talk.session.commands()
    talk.hear({"type": "error", "id": command["id"], "msg": {"code": 18, "msg": "Timeout"}})
    talk.hear({"type": "subscribed", "id": command["id"], "msg": {"channel": "orderbook_delta", "sid": 1}})

    assert kinds(talk.hear(snapshot("A", 1), snapshot("B", 2))) == [BookAnchored, BookAnchored]
    assert talk.wait(60) == []
    assert talk.commands() == []


@pytest.mark.parametrize("code", [10, 18, 25, 27])
def test_what_was_refused_for_the_moment_is_asked_for_again_later_each_time(code):
    talk = Talk()
    waits = []
    for _ in range(3):
        [command] = talk.session.commands()
        [refusal] = talk.hear({"type": "error", "id": command["id"], "msg": {"code": code, "msg": "Not now"}})
        assert refusal.channels == ["orderbook_delta"]
        began = talk.now
        while not talk.session.subscriptions.commands:
            talk.wait(0.25)
        waits.append(talk.now - began)
    talk.acknowledge(1)

    assert waits == [1, 2, 4]
    assert kinds(talk.hear(snapshot("A", 1))) == [BookAnchored]
    [added] = wanting(talk, *"ABC")
    talk.hear({"type": "error", "id": added["id"], "sid": 1, "seq": 2, "msg": {"code": 27, "msg": "Not now"}})
    talk.wait(59)
    assert {params["action"] for _, params in talk.commands()} == {"get_snapshot"}
    talk.wait(1)
    assert "add_markets" in {params["action"] for _, params in talk.commands()}


def test_a_channel_that_is_acknowledged_after_the_refusal_of_another_is_taken():
    talk = Talk(channels=("orderbook_delta", "tradez"))
    [command] = talk.session.commands()
    error = {"type": "error", "id": command["id"], "msg": {"code": 8, "msg": "Unknown channel name"}}
    acknowledged = {"type": "subscribed", "id": command["id"], "msg": {"channel": "orderbook_delta", "sid": 1}}

    assert kinds(talk.hear(error, acknowledged, snapshot("A", 1))) == [CommandRefused, BookAnchored]
    assert talk.wait(9) == []


def test_messages_of_no_subscription_are_dropped_and_said_and_unreadable_ones_kept():
    talk = Talk()
    unreadable = delta("A", 1, "much", sid=5)

    for message in (samples.QUOTE, samples.SOCKET_TRADE, samples.DETERMINED, delta("A", 1), snapshot("A", 1)):
        for sid in (0, 5):
            [dropped] = talk.hear(message | {"sid": sid})
            assert (dropped.reason, dropped.sid) == ("no such subscription", sid)
    assert kinds(talk.hear(unreadable, {"type": "weather"})) == [RefusedObject, UnknownKind]


def test_a_book_under_the_number_of_another_channel_is_no_book():
    talk = Talk(channels=("trade",))
    talk.acknowledge(1)

    assert [event.reason for event in talk.hear(snapshot("A", 1), delta("A", 2))] == ["not followed", "no snapshot yet"]


def test_a_refused_addition_leaves_the_other_markets():
    talk = talking(*ANCHORED)
    talk.session.subscriptions.wanted["C"] = None
    talk.session.begin(talk.now)
    [command] = talk.session.commands()
    error = {"type": "error", "id": command["id"], "sid": 1, "seq": 3, "msg": {"code": 26, "msg": "Market limit"}}

    assert talk.hear(error) == [CommandRefused(26, "Market limit", [], ["C"])]
    assert kinds(talk.hear(delta("A", 4))) == [BookChange]
    assert talk.wait(60) == []


def wanting(talk, *tickers):
    """Want these markets; return the commands that follow from it."""
    talk.session.subscriptions.wanted = dict.fromkeys(tickers)
    talk.session.begin(talk.now)
    return talk.session.commands()


def test_an_addition_refused_for_some_markets_is_sent_again_for_the_others():
    talk = talking(*ANCHORED)
    [command] = wanting(talk, *"ABCDE")
    error = {"code": 11, "msg": "Invalid parameter", "market_tickers": ["D", "Z"]}

    [refusal] = talk.hear({"type": "error", "id": command["id"], "sid": 1, "seq": 3, "msg": error})
    assert refusal.tickers == ["D"]
    assert talk.wait(1) == []
    [(_, params)] = talk.commands()
    assert (params["action"], params["market_tickers"]) == ("add_markets", ["C", "E"])


def test_a_refused_market_that_is_followed_anew_is_asked_for_anew():
    talk = talking(*ANCHORED)
    [command] = wanting(talk, *"ABC")
    talk.hear({"type": "error", "id": command["id"], "sid": 1, "seq": 3, "msg": {"code": 26, "msg": "Market limit"}})

    assert wanting(talk, *"AB") == []
    [again] = wanting(talk, *"ABC")
    assert again["params"] == {"sids": [1], "market_tickers": ["C"], "action": "add_markets"}


def test_an_ended_subscription_owes_no_answers():
    talk = talking(*ANCHORED)
    [command] = wanting(talk, *"ABC")
    talk.hear({"type": "error", "sid": 1, "seq": 3, "msg": {"code": 25, "msg": "Buffer overflow"}})
    talk.wait(5)
    talk.acknowledge(2)

    assert talk.wait(5.1) == []
    unknown = {"type": "error", "id": command["id"], "msg": {"code": 7, "msg": "Unknown subscription"}}
    assert kinds(talk.hear(unknown)) == [CommandRefused]
    assert kinds(talk.hear(snapshot("C", 1, sid=2))) == [BookAnchored]


@pytest.mark.parametrize("named", [["B"], []])
def test_a_market_without_a_snapshot_does_not_keep_the_others_from_theirs(named):
    tickers = [*"ABCDE"]
    talk = Talk(tickers)
    talk.acknowledge(1)
    talk.hear(*(snapshot(ticker, seq) for seq, ticker in enumerate(tickers, start=1)), delta("A", 7))
    seq = itertools.count(8)

    for _ in range(20):
        for command in talk.session.commands():
            asked = command["params"]["market_tickers"]
            if "B" in asked:
                error = {"code": 11, "msg": "Invalid parameter", "market_tickers": named}
                talk.hear({"type": "error", "id": command["id"], "sid": 1, "seq": next(seq), "msg": error})
            else:
                talk.hear(*(snapshot(ticker, next(seq)) for ticker in asked))
        talk.wait(1)
    assert sorted(talk.session.books) == ["A", "C", "D", "E"]
    assert talk.commands() == []
    assert [event.tickers for event in talk.wait(60)] == [["B"]]


def test_a_snapshot_that_the_exchange_had_no_time_for_is_asked_for_as_one_that_did_not_come():
    talk = talking(*ANCHORED)
    talk.hear(delta("A", 4))
    [command] = talk.session.commands()
    busy = {"type": "error", "id": command["id"], "sid": 1, "seq": 5, "msg": {"code": 27, "msg": "Too many commands"}}

    assert kinds(talk.hear(busy)) == [CommandRefused]
    assert talk.commands() == []
    assert [event.tickers for event in talk.wait(10)] == [["A", "B"]]


@pytest.mark.parametrize("code", [10, 25])
def test_an_error_that_ends_a_subscription_is_a_gap_and_it_is_subscribed_to_again_later_each_time(code):
    talk = talking(*ANCHORED)
    waits = []
    for sid in (1, 2, 3):
        seq = 3 if sid == 1 else 1
        [gap] = talk.hear({"type": "error", "sid": sid, "seq": seq, "msg": {"code": code, "msg": "too slow"}})
        assert (gap.channel, gap.reason, gap.next_seq) == ("orderbook_delta", f"error {code}: too slow", 0)
        assert gap.tickers == (["A", "B"] if sid == 1 else [])
        assert talk.session.books == {}
        began = talk.now
        while not talk.session.subscriptions.commands:
            talk.wait(0.25)
        waits.append(talk.now - began)
        talk.acknowledge(sid + 1)

    assert waits == [1, 2, 4]


def test_a_subscription_that_the_exchange_ends_by_itself_is_a_gap_too():
    talk = talking(*ANCHORED)
    [gap] = talk.hear({"type": "unsubscribed", "sid": 1, "seq": 3})

    assert (gap.reason, gap.tickers) == ("unsubscribed by the exchange", ["A", "B"])
    talk.wait(1)
    assert [name for name, _ in talk.commands()] == ["subscribe"]


def test_an_ending_error_about_no_known_subscription_ends_the_connection():
    talk = talking(*ANCHORED)

    with pytest.raises(SocketLost, match="error 25 of no subscription"):
        talk.hear({"type": "error", "msg": {"code": 25, "msg": "Buffer overflow"}})
    [refusal] = talk.hear({"type": "error", "msg": {"code": 5, "msg": "Unknown command"}})
    assert refusal.code == 5


# --- Sequence numbers ---


def test_a_book_is_its_snapshot_and_the_changes_since():
    talk = talking(*ANCHORED)
    events = talk.hear(delta("A", 3, "-1.00", "0.40"), delta("A", 4, "2.50", "0.41"), delta("A", 5, "-2.00", "0.40"))

    assert [(event.size, event.change, event.seq) for event in events] == [
        (2_000_000, -1_000_000, 3),
        (2_500_000, 2_500_000, 4),
        (0, -2_000_000, 5),
    ]
    assert talk.book("A") == ([(410_000, 2_500_000)], [])
    assert talk.book("B") == ([], [(550_000, 1_000_000)])
    assert events[1].levels() == ((0, 1, 410_000), (1, -1, 590_000))


def test_other_frames_of_the_subscription_count_too():
    talk = talking(*ANCHORED)
    answers = [
        {"type": "ok", "id": 50, "sid": 1, "seq": 3, "msg": {"market_tickers": ["A", "B"]}},
        {"type": "error", "id": 51, "sid": 1, "seq": 4, "msg": {"code": 11, "msg": "Invalid parameter"}},
        {"type": "weather", "sid": 1, "seq": 5, "msg": {}},
        {"type": "unsubscribed", "id": 52, "sid": 2, "seq": 9},
    ]
    talk.hear(*answers)

    assert kinds(talk.hear(delta("A", 6))) == [BookChange]


def test_an_answer_that_does_not_count_is_an_answer():
    talk = talking(*ANCHORED)
    [command] = wanting(talk, *"ABC")
    listed = {"type": "ok", "id": command["id"], "sid": 1, "seq": 2, "msg": {"market_tickers": ["A", "B", "C"]}}

    assert talk.hear(listed) == []
    assert kinds(talk.hear(snapshot("C", 3))) == [BookAnchored]
    assert talk.wait(11) == []


def test_a_number_that_came_before_is_dropped_and_said():
    talk = talking(*ANCHORED, delta("A", 3))
    before = talk.book("A")

    assert talk.hear(delta("A", 3)) == [Dropped(1, 3, "orderbook_delta", "A", "its number came before")]
    assert talk.book("A") == before
    assert kinds(talk.hear(delta("A", 4))) == [BookChange]


def test_a_gap_drops_all_books_of_the_subscription_and_asks_for_them_over_the_socket():
    talk = talking(*ANCHORED, delta("A", 3))
    events = talk.hear(delta("B", 5))

    assert events == [
        SequenceGap(1, "orderbook_delta", "sequence", ["A", "B"], 3, 5, TS),
        Dropped(1, 5, "orderbook_delta", "B", "no snapshot yet"),
        SnapshotsRequested(1, ["A", "B"]),
    ]
    assert talk.session.books == {}
    assert talk.commands() == [
        ("update_subscription", {"sids": [1], "market_tickers": ["A", "B"], "action": "get_snapshot"})
    ]
    assert kinds(talk.hear(snapshot("B", 6), delta("A", 7), delta("B", 8))) == [BookAnchored, Dropped, BookChange]
    assert kinds(talk.hear(snapshot("A", 9) | {"id": 2}, delta("A", 10))) == [BookAnchored, BookChange]


def test_a_snapshot_after_a_gap_is_valid_at_once():
    talk = talking(*ANCHORED)

    assert kinds(talk.hear(snapshot("A", 4, [("0.10", "1")]))) == [SequenceGap, BookAnchored, SnapshotsRequested]
    assert talk.book("A") == ([(100_000, 1_000_000)], [])
    [(_, params)] = talk.commands()
    assert params["market_tickers"] == ["B"]


def test_the_first_number_has_to_be_one():
    talk = talking()
    [gap, anchored, requested] = talk.hear(snapshot("A", 2))

    assert (gap.seq, gap.next_seq, gap.tickers) == (0, 2, [])
    assert (anchored.ticker, requested.tickers) == ("A", ["B"])


def test_a_number_that_goes_back_is_a_gap():
    talk = talking(*ANCHORED, delta("A", 3), delta("A", 4))

    assert kinds(talk.hear(delta("A", 2))) == [SequenceGap, Dropped, SnapshotsRequested]
    assert kinds(talk.hear(snapshot("A", 5), delta("A", 6))) == [BookAnchored, BookChange]


def test_a_snapshot_whose_number_came_before_is_no_book():
    talk = talking(*ANCHORED, delta("A", 3), delta("A", 4))

    assert kinds(talk.hear(snapshot("A", 1, [("0.40", "3.00")]))) == [SequenceGap, Dropped, SnapshotsRequested]
    assert talk.book("A") is None
    assert kinds(talk.hear(delta("A", 5))) == [Dropped]


def test_another_message_with_the_last_number_is_a_gap():
    talk = talking(*ANCHORED, delta("A", 3))
    gap, dropped, requested = talk.hear(delta("B", 3))

    assert gap == SequenceGap(1, "orderbook_delta", "sequence", ["A", "B"], 2, 3, TS)
    assert dropped == Dropped(1, 3, "orderbook_delta", "B", "its number came before")
    assert requested.tickers == ["A", "B"]


def test_an_end_of_a_subscription_counts_whatever_its_number():
    talk = talking(*ANCHORED, delta("A", 3))
    talk.hear({"type": "error", "sid": 1, "seq": 2, "msg": {"code": 25, "msg": "Buffer overflow"}})
    talk.wait(1)

    assert [name for name, _ in talk.commands()] == ["subscribe"]


def test_a_lost_connection_is_a_gap_of_each_subscription_since_its_last_message():
    talk = Talk(channels=("orderbook_delta", "trade"))
    talk.acknowledge(1, 2)
    talk.hear(snapshot("A", 1), delta("A", 2), samples.SOCKET_TRADE | {"sid": 2, "seq": 1})

    assert talk.session.lose_all("closed") == [
        SequenceGap(1, "orderbook_delta", "closed", ["A"], 2, 0, TS),
        SequenceGap(2, "trade", "closed", [], 1, 0, samples.SOCKET_TRADE["msg"]["ts_ms"]),
    ]
    assert talk.session.books == {}


def test_changes_before_the_first_snapshot_are_dropped_and_said_one_by_one():
    talk = talking()

    assert [(event.ticker, event.reason) for event in talk.hear(delta("A", 1), delta("C", 2))] == [
        ("A", "no snapshot yet"),
        ("C", "no snapshot yet"),
    ]


def test_a_level_below_zero_drops_that_market_only():
    talk = talking(*ANCHORED)
    events = talk.hear(delta("A", 3, "-3.01", "0.40"))

    assert kinds(events) == [SequenceGap, Dropped, SnapshotsRequested]
    assert (events[0].reason, events[0].tickers, events[0].seq, events[0].next_seq) == (
        "a size below zero",
        ["A"],
        2,
        3,
    )
    assert (talk.book("A"), events[2].tickers) == (None, ["A"])
    assert kinds(talk.hear(delta("B", 4))) == [BookChange]


def test_a_change_that_cannot_be_read_drops_its_market_or_all():
    talk = talking(*ANCHORED)
    [refusal, gap, requested] = talk.hear(delta("A", 3, "much"))

    assert (type(refusal), gap.reason, gap.tickers, requested.tickers) == (RefusedObject, "unreadable", ["A"], ["A"])
    talk = talking(*ANCHORED)
    [_, gap, _] = talk.hear(delta("?", 3))
    assert gap.tickers == ["A", "B"]


def test_a_message_without_a_number_where_all_have_one_is_a_gap():
    talk = talking(*ANCHORED)

    assert kinds(talk.hear(delta("A", 0))) == [SequenceGap, Dropped, SnapshotsRequested]
    assert talk.session.books == {}


def test_tickers_have_no_numbers():
    talk = Talk(channels=("ticker",))
    talk.acknowledge(11)
    quote = samples.QUOTE

    assert talk.hear(quote, quote) == [parse(frame(quote)).message] * 2


def test_combos_are_left_out_of_the_whole_exchanges_trades_and_said():
    talk = Talk(tickers=(), channels=(), everywhere=("trade",))
    talk.acknowledge(11)
    body = samples.SOCKET_TRADE["msg"] | {"market_ticker": "KXMVESPORTS-S1"}

    assert talk.hear(samples.SOCKET_TRADE | {"seq": 1, "msg": body}) == [
        Dropped(11, 1, "trade", "KXMVESPORTS-S1", "a combo")
    ]
    assert len(talk.hear(samples.SOCKET_TRADE)) == 1


def test_a_gap_in_trades_says_since_when():
    talk = Talk(channels=("trade",))
    talk.acknowledge(11)
    first, third = (samples.SOCKET_TRADE | {"seq": seq} for seq in (1, 3))
    talk.hear(first)
    [gap, trade] = talk.hear(third)

    assert gap == SequenceGap(11, "trade", "sequence", [], 1, 3, 1669149841000)
    assert trade.trade_id == samples.SOCKET_TRADE["msg"]["trade_id"]
    assert talk.commands() == []


# --- Snapshots that do not come ---


def test_snapshots_that_do_not_come_are_asked_for_again_less_often_each_time():
    talk = talking()
    asked = []
    for _ in range(200):
        for event in talk.wait(1):
            asked.append((talk.now - 1000, event.tickers))
            talk.commands()
        if talk.now == 1012:
            talk.hear(snapshot("B", 1))

    assert asked == [
        (10, ["A", "B"]),  # the exchange sends the first by itself
        *((at, ["A"]) for at in (15, 25, 45, 85, 145)),
    ]


def test_gaps_in_a_row_do_not_ask_more_than_once_a_second():
    talk = talking(*ANCHORED)
    requests = Counter()
    for seq in range(4, 400, 2):
        talk.now += 0.05
        requests.update(kinds(talk.hear(delta("A", seq))))

    assert requests[SequenceGap] == 198
    assert requests[SnapshotsRequested] == 10


def test_an_error_in_place_of_a_snapshot_is_said_and_tried_again():
    talk = talking(*ANCHORED)
    talk.hear(delta("A", 9))
    [command] = talk.session.commands()
    [refusal] = talk.hear(
        {"type": "error", "id": command["id"], "sid": 1, "seq": 10, "msg": {"code": 18, "msg": "Timeout"}}
    )

    assert (refusal.code, refusal.tickers) == (18, ["A", "B"])
    assert kinds(talk.wait(5)) == [SnapshotsRequested]


# --- Against an oracle ---


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
