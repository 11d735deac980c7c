"""The exchange's market channel protocol: handles a client's requests to a replay."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from api.replay.exchange_encoder import ExchangeEncoder
from api.replay.history import HistoryReader
from api.replay.player import Player

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from api.replay.history import Rows
    from api.replay.player import ReplaySpan

MAX_TOKENS = 500  # per connection, as at the exchange
MAX_DIGITS = 78  # of a token: a uint256
PONG, INVALID = b"PONG", b"INVALID OPERATION"


class Request(msgspec.Struct):
    """A client's request: the first has a `type`, later ones an `operation`."""

    assets_ids: list[str] = []
    type: str = ""
    operation: str = ""
    custom_feature_enabled: bool | None = None
    initial_dump: bool = True


_decode = msgspec.json.Decoder(Request).decode


class ReplayChannel:
    """One connection to the replayed market channel.

    `push` sends immediately, `send` waits for room; `rows` runs a query and returns its rows.
    """

    def __init__(
        self,
        rows: Rows,
        span: ReplaySpan,
        *,
        send: Callable[[bytes], object],
        push: Callable[[bytes], object],
        pause: Callable[[], object] = lambda: None,
    ) -> None:
        self._push = push
        self._encoder = ExchangeEncoder()
        self._history = HistoryReader(rows, pause)
        self._tokens: set[str] = set()
        self.player = Player(self._history, self._encoder, span, send)

    def receive(self, said: str) -> None:
        """Handle a client's message."""
        if said.strip().upper() == "PING":
            self._push(PONG)
            return
        try:
            request = _decode(said)
        except (msgspec.MsgspecError, RecursionError):
            self._push(INVALID)
            return
        operation = request.operation or ("subscribe" if request.type.lower() == "market" else "")
        wanted = dict.fromkeys(
            token for token in request.assets_ids if len(token) <= MAX_DIGITS and token.isascii() and token.isdigit()
        )
        if operation == "subscribe" and len(self._tokens.union(wanted)) <= MAX_TOKENS:
            self._tokens.update(wanted)
            custom = request.custom_feature_enabled
            self.player.enqueue(lambda: self._follow(wanted, custom=custom))
        elif operation == "unsubscribe":
            gone = self._tokens.intersection(wanted)
            self._tokens -= gone
            self.player.enqueue(lambda: self.player.unfollow(gone))
        else:
            self._push(INVALID)

    def _follow(self, wanted: Iterable[str], *, custom: bool | None) -> None:
        if custom is not None:
            self._encoder.custom = custom
        self.player.follow(self._history.places(token for token in wanted if token in self._tokens))
