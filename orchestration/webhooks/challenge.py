"""Challenges: a receiver proves that it wants a webhook's messages by repeating a random text."""

from __future__ import annotations

from hmac import compare_digest

import msgspec

TYPE = "webhook.challenge"
NOT_ECHOED = "the answer did not repeat the challenge"


class _Data(msgspec.Struct):
    challenge: str


class _Message(msgspec.Struct):
    data: _Data


class _Answer(msgspec.Struct):
    challenge: str


_message = msgspec.json.Decoder(_Message)
_answer = msgspec.json.Decoder(_Answer)


def sent(body: str) -> str:
    """Return the challenge of a message."""
    return _message.decode(body).data.challenge


def echoed(body: str, answer: str) -> bool:
    """Return whether an answer is the message's challenge: as plain text, or as the field `challenge` of JSON.

    A server that returns whatever it is sent does not pass, as the message has the challenge in another place.
    """
    try:
        text = _answer.decode(answer).challenge
    except msgspec.MsgspecError:
        text = answer.strip()
    return compare_digest(text.encode(), sent(body).encode())
