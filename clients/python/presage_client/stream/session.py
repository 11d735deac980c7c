"""The protocol without a socket: which commands to send, and what received messages mean."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from presage_client.stream.errors import Interrupted, Refused
from presage_client.stream.events import Event, Gap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_MARKETS_PER_COMMAND = 500  # a message to the server is at most 64 KiB
FINAL = {1003, 1007, 1008, 1009}  # close codes after which a new connection would be refused, too
MAX_FRAME_BYTES = 16 << 20  # a book is one message, however long
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
        wallets: Iterable[str] = (),
        resume_from: int | None = None,
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in SCHEMES:
            raise ValueError(f"not an address of the service: {address}")
        path = parts.path.rstrip("/").removesuffix("/stream") + "/stream"
        self.url = urlunsplit((SCHEMES[parts.scheme], parts.netloc, path, urlencode({"api_key": key}), ""))
        self._markets = None if markets is None else list(markets)
        self._types = None if types is None else list(types)
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
            commands.append({"action": "subscribe", **filter_})
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

    def receive(self, text: str) -> tuple[list[Event | Gap], list[str]]:
        """Return the events of a frame, and the commands to send."""
        events: list[Event | Gap] = []
        answers: list[str] = []
        for line in text.split("\n"):
            message = json.loads(line)
            kind = message["type"]
            if "data" in message:
                if not self._unanswered and message["seq"] > (self.last or 0):
                    self.last = message["seq"]
                    events.append(Event(kind, message["seq"], message["ts"], message.get("market_id"), message["data"]))
            elif kind == "hello":
                self.last = message["seq"] if self.last is None else self.last
                answers += self.commands()
            elif kind == "subscribed":
                self._unanswered -= 1
            elif kind == "pong":
                self._advance(message)
            elif kind == "replay_completed":
                events += self._completed(message)
            elif kind == "error":
                self._failed(message)
        return events, answers

    @staticmethod
    def ping() -> str:
        """Return the command for a quiet connection: its answer moves `last` on where events are rare."""
        return '{"action":"ping"}'

    def closed(self, code: int | None, reason: str) -> Interrupted:
        """Return the interruption for a close code, or raise `Refused`."""
        if code in FINAL:
            raise Refused(str(code), reason)
        return Interrupted(f"closed with {code}: {reason}")

    def refused(self, status: int, body: bytes, retry_after: str | None) -> Interrupted:
        """Return the interruption for an answer other than the upgrade, or raise `Refused`."""
        if status in {429, 500, 502, 503, 504}:
            wait = float(retry_after) if retry_after and retry_after.isdigit() else None
            return Interrupted(f"answered {status}", wait)
        try:
            problem = json.loads(body)
            raise Refused(problem["code"], problem["detail"])
        except (ValueError, KeyError, TypeError):
            raise Refused(str(status), body.decode(errors="replace")[:500]) from None

    def pause(self, asked: float | None = None) -> float:
        """Return the seconds until the next attempt: exponential, with jitter."""
        self._failures += 1
        longest = min(10.0, 0.1 * 2 ** min(self._failures, 10))
        return max(asked or 0.0, random.uniform(longest / 2, longest))  # noqa: S311 - no secret

    def _advance(self, message: dict[str, Any]) -> None:
        if not self._unanswered and isinstance(message.get("seq"), int):
            self.last = max(self.last or 0, message["seq"])

    def _completed(self, message: dict[str, Any]) -> Iterator[Gap]:
        if self._unanswered:
            return
        self._failures = 0
        self.last = message["seq"]
        if not message["complete"]:
            yield Gap(self._resumed_from, message["seq"])

    def _failed(self, message: dict[str, Any]) -> None:
        if message["code"] in {"overloaded", "internal"}:
            raise Interrupted(message["detail"], 1.0)
        raise Refused(message["code"], message["detail"])
