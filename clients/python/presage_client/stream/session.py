"""The protocol without a socket: which commands to send, and what received messages mean."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any
from urllib.parse import quote_plus, urlencode, urlunsplit

from presage_client._address import split_address
from presage_client.errors import parse_retry_after
from presage_client.stream.errors import Interrupted, Refused
from presage_client.stream.events import Event, StreamGap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from websockets.exceptions import ConnectionClosed
    from websockets.http11 import Response

MAX_MARKETS_PER_COMMAND = 500  # a message to the server is at most 64 KiB
FINAL = {1003, 1007, 1008, 1009}  # close codes after which a new connection would be refused, too
MAX_RETRY_AFTER_S = 60.0
MALFORMED = (ValueError, KeyError, TypeError, AttributeError, RecursionError)  # what parsing such a frame raises
MALFORMED_WAIT_S = 1.0
IDLE_S = 20.0  # without a message: then a ping asks for the stream's position
SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


class Session:
    """The position of a subscriber, over any number of connections."""

    def __init__(
        self,
        address: str,
        key: str,
        *,
        markets: Iterable[str] | None = None,
        types: Iterable[str] | None = None,
        exchange: str | None = None,
        wallets: Iterable[str] = (),
        resume_from: int | None = None,
    ) -> None:
        parts = split_address(address, set(SCHEMES))
        self._key = key.strip()
        path = parts.path.rstrip("/").removesuffix("/stream") + "/stream"
        self.url = urlunsplit((SCHEMES[parts.scheme], parts.netloc, path, urlencode({"api_key": self._key}), ""))
        self._markets = None if markets is None else list(markets)
        self._types = None if types is None else list(types)
        if exchange is not None and markets is not None:
            raise ValueError("`exchange` is for all markets of an exchange, without `markets`")
        self._exchange = exchange
        self._wallets = list(wallets)
        self.last = resume_from  # `seq` of the newest event received or passed over
        self._resumed_from = 0
        self._unanswered = 0
        self._failures = 0

    def __repr__(self) -> str:
        return f"{self._unanswered} commands pending, resumed from {self._resumed_from}"

    def commands(self) -> list[str]:
        """Return the commands for a new connection, sent after its `hello`."""
        commands: list[dict[str, Any]] = []
        if self._wallets:
            commands.append({"action": "subscribe_wallet", "wallets": self._wallets})
        filter_ = {} if self._types is None else {"types": self._types}
        if self._markets is None:
            of = {} if self._exchange is None else {"exchange": self._exchange}
            commands.append({"action": "subscribe", **of, **filter_})
        else:  # an empty list still subscribes: to wallets alone
            parts = range(0, len(self._markets) or 1, MAX_MARKETS_PER_COMMAND)
            commands += [
                {"action": "subscribe", "markets": self._markets[at : at + MAX_MARKETS_PER_COMMAND], **filter_}
                for at in parts
            ]
        # Only the last one replays: events received before it match half of the filters, and are ignored.
        commands[-1]["resume_from"] = self._resumed_from = self.last or 0
        self._unanswered = len(commands)
        return [json.dumps(each) for each in commands]

    def receive(self, text: str) -> tuple[list[Event | StreamGap], list[str]]:
        """Return the events of a frame, and the commands to send. A frame that fails does not move `last`."""
        before = self.last
        events: list[Event | StreamGap] = []
        answers: list[str] = []
        try:
            for line in text.split("\n"):
                self._message(json.loads(line), events, answers)
        except MALFORMED:
            self.last = before
            raise Interrupted("a malformed frame", MALFORMED_WAIT_S) from None
        except (Interrupted, Refused):
            self.last = before
            raise
        return events, answers

    @staticmethod
    def ping() -> str:
        """Return the command for a quiet connection: its answer moves `last` on where events are rare."""
        return '{"action":"ping"}'

    def closed(self, closed: ConnectionClosed) -> Interrupted:
        """Return the interruption for a closed connection, or raise `Refused`."""
        # If this side closed it first (for invalid UTF-8, say), the code received is only that code sent back.
        received = None if closed.rcvd_then_sent is False else closed.rcvd
        if received is None:
            return Interrupted("the connection was lost")
        if received.code in FINAL:
            raise Refused(str(received.code), self._redacted(received.reason))
        return Interrupted(f"closed with {received.code}: {received.reason}")

    def refused(self, response: Response, now: float) -> Interrupted:
        """Return the interruption for an answer other than the upgrade, or raise `Refused`; `now` is the Unix time."""
        status, body = response.status_code, bytes(response.body or b"")
        if status in {429, 500, 502, 503, 504}:
            headers = response.headers.get_all("Retry-After")
            wait = parse_retry_after(headers[0], now) if headers else None
            return Interrupted(f"answered {status}", None if wait is None else min(wait, MAX_RETRY_AFTER_S))
        try:
            problem = json.loads(body)
            code, detail = str(problem["code"]), str(problem["detail"])
        except MALFORMED:
            code, detail = str(status), body.decode(errors="replace")
        raise Refused(code, self._redacted(detail)[:500])

    def pause(self, asked: float | None = None) -> float:
        """Return the seconds until the next attempt: exponential, with jitter."""
        self._failures += 1
        longest = min(10.0, 0.1 * 2 ** min(self._failures, 10))
        pause: float = max(asked or 0.0, longest / 2) + random.uniform(0, longest / 2)  # noqa: S311 - no secret
        return pause

    def _message(self, message: dict[str, Any], events: list[Event | StreamGap], answers: list[str]) -> None:
        kind = message["type"]
        if "data" in message:
            seq, ts, data = _integer(message, "seq"), _integer(message, "ts"), message["data"]
            if not isinstance(data, dict):
                raise TypeError("data")
            if not self._unanswered and seq > (self.last or 0):
                self.last = seq
                events.append(Event(kind, seq, ts, message.get("market_id"), data))
        elif kind == "hello":
            self.last = _integer(message, "seq") if self.last is None else self.last
            answers += self.commands()
        elif kind == "subscribed":
            self._unanswered = max(0, self._unanswered - 1)
        elif kind == "pong":
            self._advance(message)
        elif kind == "replay_completed":
            events += self._completed(message)
        elif kind == "error":
            self._failed(message)

    def _redacted(self, text: str) -> str:
        """Return a text of a server or proxy, which may quote the request, without the key."""
        for key in {self._key, quote_plus(self._key)} - {""}:
            text = text.replace(key, "…")
        return text

    def _advance(self, message: dict[str, Any]) -> None:
        if not self._unanswered and isinstance(message.get("seq"), int):
            self.last = max(self.last or 0, message["seq"])

    def _completed(self, message: dict[str, Any]) -> Iterator[StreamGap]:
        if self._unanswered:
            return
        self.last = _integer(message, "seq")
        self._failures = 0
        if not message["complete"]:
            yield StreamGap(self._resumed_from, message["seq"])

    def _failed(self, message: dict[str, Any]) -> None:
        if message["code"] in {"overloaded", "internal"}:
            raise Interrupted(message["detail"], 1.0)
        raise Refused(message["code"], message["detail"])


def _integer(message: dict[str, Any], name: str) -> int:
    value = message[name]
    if type(value) is not int:
        raise TypeError(name)
    return value
