import itertools

import pytest

from tests.upstream.kalshi import samples
from tests.upstream.kalshi.samples import frame
from tests.upstream.kalshi.talk import ANCHORED, Talk, delta, kinds, snapshot, talking, wanting
from upstream.kalshi.socket.events import (
    BookAnchored,
    BookChange,
    CommandRefused,
)
from upstream.kalshi.socket.frames import parse
from upstream.kalshi.socket.messages import UnknownKind
from upstream.kalshi.socket.subscriptions import MAX_TICKERS_PER_COMMAND
from upstream.transport.errors import RefusedObject, SocketLost


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


@pytest.mark.parametrize("place", [{}, {"sid": 1}, {"sid": 1, "seq": 3}, {"id": 1}])
@pytest.mark.parametrize(
    "message", [{"type": "error", "msg": {"code": "full"}}, {"type": "unsubscribed", "sending_ts_ms": "late"}]
)
def test_after_an_unreadable_error_or_end_a_connection_is_not_trusted(message, place):
    talk = talking(*ANCHORED)

    with pytest.raises(SocketLost, match=f"kind {message['type']}"):
        talk.hear(message | place)
    assert [gap.tickers for gap in talk.session.lose_all("lost")] == [["A", "B"]]


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
