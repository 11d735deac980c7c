from collections import Counter

from tests.upstream.kalshi import samples
from tests.upstream.kalshi.samples import frame
from tests.upstream.kalshi.talk import ANCHORED, TS, Talk, delta, kinds, snapshot, talking, wanting
from upstream.kalshi.socket.events import (
    BookAnchored,
    BookChange,
    Dropped,
    SequenceGap,
    SnapshotsRequested,
)
from upstream.kalshi.socket.frames import parse
from upstream.transport.errors import RefusedObject


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
