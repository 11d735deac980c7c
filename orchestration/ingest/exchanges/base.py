"""Interface between the feed and an exchange: an HTTP client, and socket connections that yield messages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import msgspec

from orchestration.ingest.storage.rows import Refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence

    from config.exchanges import Exchange
    from orchestration.ingest.storage.rows import Token, TradeRow
    from upstream.polymarket.book import Book
    from upstream.polymarket.market_channel.messages import ChannelMessage
    from upstream.transport.errors import RefusedObject

    Messages = list[ChannelMessage | RefusedObject]
    Keep = Callable[[bytes, float], bool]


class Listed(Protocol):
    """A trade of the exchange's own list."""

    @property
    def token_id(self) -> str:
        """Its token."""
        ...

    @property
    def market(self) -> str:
        """Its market's id."""
        ...


class Missed(msgspec.Struct, frozen=True):
    """What a connection has missed while it stayed open."""

    cause: str
    token_ids: list[str]
    from_ms: int
    kinds: tuple[str, ...]
    books: bool
    """Whether books are wrong until they come anew; otherwise it was trades, and is over."""


class Connection(Protocol):
    """One connection: an async context manager, and an iterator of (received, messages).

    Any end of it raises `SocketLost`. Messages that are missing between two others go to `on_missed` before the latter.
    """

    @property
    def assets(self) -> Collection[str]:
        """Tokens that it was opened with, or subscribed to since."""
        ...

    async def __aenter__(self) -> Self:
        """Open it; `SocketLost` if that fails."""
        ...

    def __aiter__(self) -> AsyncIterator[tuple[float, Messages]]:
        """Return the iterator."""
        ...

    async def subscribe(self, assets: Iterable[str]) -> None:
        """Subscribe to more tokens."""
        ...

    async def unsubscribe(self, assets: Iterable[str]) -> None:
        """Unsubscribe from tokens."""
        ...

    def request_books(self, assets: Iterable[str]) -> None:
        """Ask for books anew, where they come over the connection alone."""
        ...

    async def close(self) -> None:
        """Close it."""
        ...


class ExchangeClient(ABC):
    """HTTP client, with blocking calls, for threads; and the connections of the feed."""

    exchange: ClassVar[Exchange]
    source: str
    """Name under which its data is stored."""
    assets_per_socket: int | None = None
    """Tokens on one connection; None: as the settings say."""

    def __init__(self) -> None:
        self.refusals: list[Refusal] = []

    @property
    @abstractmethod
    def socket_url(self) -> str:
        """Address of the connections."""

    @abstractmethod
    def connect(
        self,
        assets: Iterable[str],
        *,
        number: int,
        keep: Keep | None,
        on_missed: Callable[[Missed], None],
        now_ms: Callable[[], int],
    ) -> Connection:
        """Return a connection that is not open yet; `number` counts them from 1, `now_ms` is the exchange's time."""

    @abstractmethod
    def books(self, token_ids: Iterable[str]) -> list[Book]:
        """Fetch books; tokens without a book are absent."""

    @abstractmethod
    def markets(self, market_ids: Iterable[str]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        """Fetch markets, and the events they belong to, as rows."""

    @abstractmethod
    def listed(self, markets: Collection[str], from_ms: int, to_ms: int) -> Sequence[Listed]:
        """List trades of some markets (none: all) between two instants, newest first."""

    @abstractmethod
    def rows(self, tokens: dict[str, Token], listed: Sequence[Any]) -> list[TradeRow]:
        """Convert listed trades of some tokens to rows, oldest first."""

    def is_paused(self) -> bool:
        """Ask the exchange whether all trading is paused; False, of one that does not say."""
        return False

    @abstractmethod
    def close(self) -> None:
        """Close the connections of HTTP."""

    def take_refusals(self) -> list[Refusal]:
        """Return and clear the refusals collected since the last call."""
        refusals, self.refusals = self.refusals, []
        return refusals

    def _refuse(self, refused: RefusedObject) -> None:
        self.refusals.append(Refusal(refused.source, refused.reason, refused.payload))
