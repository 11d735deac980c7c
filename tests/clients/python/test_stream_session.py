"""The stream client's session: messages in, commands and events out, without a socket."""

from __future__ import annotations

import json
from email.utils import formatdate

import pytest
from websockets.datastructures import Headers
from websockets.http11 import Response

from presage_client import Refused
from presage_client.stream.errors import Interrupted
from presage_client.stream.session import Session
from tests.clients.python.conftest import NOW
from tests.clients.python.stream_servers import KEY, event, say


def test_duplicates_and_events_before_the_subscription_are_dropped():
    session = Session("http://x", "key", markets=["a", "b"], resume_from=5)
    events, answers = session.receive(say("hello", session="s", seq=9, oldest_seq=1, ts=1))
    assert (events, [json.loads(each) for each in answers]) == (
        [],
        [{"action": "subscribe", "markets": ["a", "b"], "resume_from": 5}],
    )
    assert session.receive(event(9))[0] == []  # sent before the server had read the command
    assert session.receive(say("subscribed", markets=[], types="all", wallets=[]))[0] == []
    events, _ = session.receive("\n".join([event(6), event(6), event(5), event(8)]))
    assert [each.seq for each in events] == [6, 8]
    assert session.last == 8


def test_all_markets_of_another_exchange_are_asked_for_by_its_name():
    _, answers = Session("http://x", "key", exchange="kalshi").receive(say("hello", seq=9, oldest_seq=1, ts=1))

    assert json.loads(answers[0]) == {"action": "subscribe", "exchange": "kalshi", "resume_from": 9}
    with pytest.raises(ValueError, match="without `markets`"):
        Session("http://x", "key", exchange="kalshi", markets=["a"])


def test_a_stream_from_now_on_resumes_from_its_first_greeting():
    session = Session("https://x/base/", "a key&", types=["trade"])
    assert session.url == "wss://x/base/stream?api_key=a+key%26"
    _, answers = session.receive(say("hello", seq=9, oldest_seq=1, ts=1))
    assert json.loads(answers[0]) == {"action": "subscribe", "types": ["trade"], "resume_from": 9}
    session.receive(say("subscribed"))
    _, answers = session.receive(say("hello", seq=20, oldest_seq=1, ts=1))
    assert json.loads(answers[0])["resume_from"] == 9


def test_pauses_grow_to_ten_seconds_and_reset_after_success():
    session = Session("http://x", "key")
    pauses = [session.pause() for _ in range(12)]
    assert 0.1 <= pauses[0] <= 0.2
    assert 5 <= pauses[-1] <= 10
    session.receive(say("replay_completed", seq=1, complete=True))
    assert session.pause() <= 0.2
    assert session.pause(3.0) >= 3.0


@pytest.mark.parametrize(
    "tail",
    [
        "{",
        '{"type": "trade", "seq": 7.5, "ts": 1, "data": {}}',
        '{"type": "replay_completed", "seq": 9.5, "complete": true}',
        say("error", code="internal", detail=""),
        say("error", code="not_found", detail=""),
    ],
)
def test_a_frame_that_fails_does_not_move_last(tail):
    session = Session("http://x", KEY, resume_from=4)
    session.receive(say("hello", seq=9))
    session.receive(say("subscribed"))

    with pytest.raises((Interrupted, Refused)):
        session.receive("\n".join([event(5), event(6), tail]))

    assert session.last == 4
    assert [each.seq for each in session.receive(event(5))[0]] == [5]


def response(status, body=b"", retry_after=()):
    return Response(status, "", Headers([("Retry-After", each) for each in retry_after]), body)


@pytest.mark.parametrize(
    ("headers", "wait"),
    [
        ([], None),
        (["7"], 7),
        (["9" * 500], 60),
        (["86400"], 60),
        (["5", "6"], 5),
        ([formatdate(NOW + 20, usegmt=True)], 20),
        ([formatdate(NOW - 20, usegmt=True)], 0),
        (["Mon, 01 Jan 99999999999999999999 00:00:00 GMT"], None),
        (["soon"], None),
    ],
)
def test_a_busy_service_is_waited_for(headers, wait):
    assert Session("http://x", KEY).refused(response(503, b"", headers), NOW).wait_s == wait


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"code": "forbidden", "detail": "no psg_secret+key"}', "forbidden"),
        (b"no /stream?api_key=psg_secret%2Bkey", "400"),
        (b"\xff", "400"),
        (b"[" * 100_000, "400"),
        (b"[]", "400"),
        (b'{"code": "c"}', "400"),
    ],
)
def test_a_refusal_does_not_quote_the_key(body, code):
    with pytest.raises(Refused) as refused:
        Session("http://x", KEY).refused(response(400, body), NOW)
    assert refused.value.code == code
    assert "secret" not in str(refused.value)
    assert len(refused.value.detail) <= 500
