"""The protocol, without a socket: what to say, and what that which was heard means."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit, urlunsplit

from presage.client.errors import Interrupted, Refused
from presage.client.events import Event, Gap

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MARKETS_A_WISH = 500  # a message to the server is at most 64 KiB
FINAL = {1003, 1007, 1008, 1009}  # closed for what we are or said
MOST_BYTES = 16 << 20  # of a frame: a book is one message, however long
IDLE_S = 20.0  # without a message for so long, we ask how far the stream is
SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}


class Session:
    """Where a reader stands, over any number of connections."""

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
        self.last = resume_from  # the event that the reader is past
        self._resumed_from = 0
        self._unanswered = 0
        self._failures = 0

    def __repr__(self) -> str:
        return f"{self._unanswered} wishes not answered, resumed from {self._resumed_from}"

    def wishes(self) -> list[str]:
        """Give what to say on a new connection, once it has greeted."""
        said: list[dict[str, Any]] = []
        if self._wallets:
            said.append({"action": "subscribe_wallet", "wallets": self._wallets})
        filter_ = {} if self._types is None else {"types": self._types}
        if self._markets is None:
            said.append({"action": "subscribe", **filter_})
        else:  # of no markets at all: what is told of wallets remains
            parts = range(0, len(self._markets) or 1, MARKETS_A_WISH)
            said += [
                {"action": "subscribe", "markets": self._markets[at : at + MARKETS_A_WISH], **filter_} for at in parts
            ]
        # The last one replays: what came before, with half of what is wanted, counts for nothing.
        said[-1]["resume_from"] = self._resumed_from = self.last or 0
        self._unanswered = len(said)
        return [json.dumps(each) for each in said]

    def hear(self, text: str) -> tuple[list[Event | Gap], list[str]]:
        """Give the events of a frame, and what to answer."""
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
                answers += self.wishes()
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
    def ask() -> str:
        """Give what to say when nothing was heard for a while: a reader of rare events moves on as well."""
        return '{"action":"ping"}'

    def closed(self, code: int | None, reason: str) -> Interrupted:
        """Tell what the end of a connection means."""
        if code in FINAL:
            raise Refused(str(code), reason)
        return Interrupted(f"closed with {code}: {reason}")

    def refused(self, status: int, body: bytes, retry_after: str | None) -> Interrupted:
        """Tell what an answer other than the upgrade means."""
        if status in {429, 500, 502, 503, 504}:
            wait = float(retry_after) if retry_after and retry_after.isdigit() else None
            return Interrupted(f"answered {status}", wait)
        try:
            problem = json.loads(body)
            raise Refused(problem["code"], problem["detail"])
        except (ValueError, KeyError, TypeError):
            raise Refused(str(status), body.decode(errors="replace")[:500]) from None

    def pause(self, asked: float | None = None) -> float:
        """Give the seconds until the next attempt: longer each time, and never the same for all clients."""
        self._failures += 1
        longest = min(10.0, 0.1 * 2 ** min(self._failures, 10))
        return max(asked or 0.0, random.uniform(longest / 2, longest))  # noqa: S311 (no secret)

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
