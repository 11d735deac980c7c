"""One followed token: its book, its order of events, its price."""

from orchestration.ingest.order_book import Book
from orchestration.ingest.storage import ids
from orchestration.ingest.storage.rows import LiveBook, LivePrice, Token

BOOKLESS = 2  # times a book was asked for in vain: the exchange has none, nothing waits for it


class Track:
    """What is known of one token while it is followed."""

    __slots__ = (
        "agreed_ms",
        "ask",
        "ask_size",
        "asked",
        "bid",
        "bid_size",
        "book",
        "book_ms",
        "due_at",
        "eff_ms",
        "first_ms",
        "flushed_at",
        "fresh",
        "jumped",
        "last",
        "last_ms",
        "latest",
        "latest_ms",
        "latest_trade",
        "ordinal",
        "priced_ms",
        "seen",
        "seen_ms",
        "seq",
        "shown_verified",
        "tick_size",
        "token",
        "volume_24h_usd",
        "whole_since_ms",
    )

    def __init__(self, token: Token, tick_size: int | None = None, *, fresh: bool = False) -> None:
        self.token = token
        self.tick_size = tick_size
        self.book = Book()
        self.eff_ms = 0
        self.ordinal = 0
        self.seq = 0  # of the latest book event
        self.book_ms = 0  # newest instant of a book event
        self.latest: object = None  # the latest book message, to know its exact repeat
        self.latest_ms = 0
        self.latest_trade: tuple[int, int] | None = None  # instant and id
        self.seen: dict[object, int] = {}  # how often each change came in the instant `seen_ms`
        self.seen_ms = 0
        self.bid: int | None = None
        self.ask: int | None = None
        self.bid_size: int | None = None
        self.ask_size: int | None = None
        self.last: int | None = None
        self.last_ms: int | None = None
        self.priced_ms = 0
        self.volume_24h_usd: int | None = None
        self.flushed_at = 0.0  # monotonic, when its live book was last handed to the writer
        self.shown_verified: bool | None = None  # what the live book said then
        self.jumped = False  # a snapshot has told more than the changes did since
        self.whole_since_ms: int | None = None  # our clock; None while something may be missing
        self.first_ms: int | None = None  # the exchange's instant of the first book; what came later was heard
        self.fresh = fresh  # listed while we were listening: there is nothing before
        self.agreed_ms = 0  # the exchange's instant when the book was last known to be right
        self.asked = 0  # times its book was fetched in vain
        self.due_at = 0.0  # monotonic, when to fetch it

    def next_seq(self, ts_ms: int) -> int:
        """Give the next event of this token its place."""
        if ts_ms > self.eff_ms:
            self.eff_ms = ts_ms
            self.ordinal = 0
        else:
            self.ordinal += 1
        return ids.seq(self.eff_ms, self.ordinal)

    def nth(self, what: object, ts_ms: int) -> int:
        """Count how often the same thing came before within one instant."""
        if ts_ms != self.seen_ms:
            self.seen = {}
            self.seen_ms = ts_ms
        n = self.seen.get(what, 0)
        self.seen[what] = n + 1
        return n

    def whole_since(self, ms: int) -> bool:
        """Tell whether nothing of it was missed since an instant of our clock."""
        return self.whole_since_ms is not None and (self.fresh or self.whole_since_ms <= ms)

    def price(self) -> LivePrice:
        """Give the live price as it stands."""
        return LivePrice(
            self.token,
            self.bid,
            self.ask,
            self.bid_size,
            self.ask_size,
            self.last,
            self.last_ms,
            self.priced_ms,
            self.volume_24h_usd,
        )

    def live_book(self) -> LiveBook:
        """Give the live book as it stands."""
        bid_prices, bid_sizes, ask_prices, ask_sizes = self.book.arrays()
        return LiveBook(
            self.token,
            bid_prices,
            bid_sizes,
            ask_prices,
            ask_sizes,
            self.book.depth,
            self.tick_size,
            self.book.hash,
            self.seq,
            self.book.ts_ms,
            self.book.state == "verified",
            self.jumped,
        )
