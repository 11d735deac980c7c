"""The exchange's market channel, as a client of it knows it: what it may say, and what that does to a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from api.replay.exchange_encoder import Words
from api.replay.history import Course
from api.replay.player import Player

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.replay.history import Rows
    from api.replay.player import Span

MOST_TOKENS = 500  # of one connection, as at the exchange
PONG, INVALID = b"PONG", b"INVALID OPERATION"


class Request(msgspec.Struct):
    """What a client sends: the first with a `type`, later ones with an `operation`."""

    assets_ids: list[str] = []
    type: str = ""
    operation: str = ""
    custom_feature_enabled: bool | None = None
    initial_dump: bool = True


_decode = msgspec.json.Decoder(Request).decode


class Channel:
    """One connection to the market channel of the past.

    `push` sends at once, `send` waits until there is room; `rows` runs a query and gives its rows.
    """

    def __init__(
        self,
        rows: Rows,
        span: Span,
        *,
        send: Callable[[bytes], object],
        push: Callable[[bytes], object],
        pause: Callable[[], object] = lambda: None,
    ) -> None:
        self._push = push
        self._words = Words()
        self._course = Course(rows, pause)
        self._tokens: set[str] = set()
        self.player = Player(self._course, self._words, span, send)

    def hear(self, said: str) -> None:
        """Take what a client said."""
        if said.strip().upper() == "PING":
            self._push(PONG)
            return
        try:
            request = _decode(said)
        except (msgspec.MsgspecError, RecursionError):
            self._push(INVALID)
            return
        operation = request.operation or ("subscribe" if request.type.lower() == "market" else "")
        wanted = {token for token in request.assets_ids if token.isascii() and token.isdigit()}
        if operation == "subscribe" and len(self._tokens | wanted) <= MOST_TOKENS:
            self._tokens |= wanted
            self.player.wish(lambda: self._follow(request))
        elif operation == "unsubscribe":
            self._tokens -= wanted
            self.player.wish(lambda: self.player.leave(wanted))
        else:
            self._push(INVALID)

    def _follow(self, request: Request) -> None:
        if request.custom_feature_enabled is not None:
            self._words.custom = request.custom_feature_enabled
        tokens = dict.fromkeys(token for token in request.assets_ids if token in self._tokens)
        self.player.follow(self._course.places(tokens))
