"""State of one followed token: book, event order, price."""

from orchestration.ingest.books.order_book import OrderBook
from orchestration.ingest.storage import ids
from orchestration.ingest.storage.rows import LiveBook, LivePrice, Token

NO_BOOK_ATTEMPTS = 2  # failed fetches after which the exchange is taken to have no book: nothing waits for it


class TokenState:
    """State kept for one token while it is followed."""

    __slots__ = (
        "ask",
        "ask_size",
        "bid",
        "bid_size",
        "book",
        "book_ms",
        "complete_since_ms",
        "due_at",
        "eff_ms",
        "fetch_attempts",
        "first_ms",
        "first_seen",
        "last",
        "last_ms",
        "latest",
        "latest_ms",
        "latest_trade",
        "listed_ms",
        "needs_snapshot",
        "ordinal",
        "priced_ms",
        "seen",
        "seen_ms",
        "seq",
        "shown_verified",
        "tick_size",
        "token",
        "unwritten",
        "unwritten_since_ms",
        "verified_ms",
    )

    def __init__(self, token: Token, tick_size: int | None = None, *, listed_ms: int = 0) -> None:
        self.token = token
        self.tick_size = tick_size
        self.book = OrderBook()
        self.eff_ms = 0
        self.ordinal = 0
        self.seq = 0  # `seq` of the latest book event
        self.book_ms = 0  # newest timestamp of a book event
        self.latest: object = None  # the latest book message, to detect an exact repeat
        self.latest_ms = 0
        self.latest_trade: tuple[int, int] | None = None  # instant and id
        self.seen_ms = 0
        self.first_seen: object = None  # the first change at the instant `seen_ms`
        self.seen: dict[object, int] | None = None  # occurrences of each change at that instant, from the second on
        self.bid: int | None = None
        self.ask: int | None = None
        self.bid_size: int | None = None
        self.ask_size: int | None = None
        self.last: int | None = None
        self.last_ms: int | None = None
        self.priced_ms = 0
        self.unwritten = 0  # changes since its live book was last handed to the writer
        self.unwritten_since_ms = 0  # when the first of them was received, by our clock
        self.shown_verified: bool | None = None  # `verified` of the live book as last written
        self.needs_snapshot = False  # a snapshot changed the book beyond what published changes explain
        self.complete_since_ms: int | None = None  # our clock; None while something may be missing
        self.first_ms: int | None = None  # exchange timestamp of the first book; everything later was received
        # Exchange timestamp of the listing, if heard, and nothing was missed since then; otherwise 0.
        self.listed_ms = listed_ms
        self.verified_ms = 0  # exchange timestamp at which the book last agreed
        self.fetch_attempts = 0  # fetches of its book without success
        self.due_at = 0.0  # monotonic, when to fetch it

    def begin(self, what: object, ts_ms: int) -> int:
        """Return the `seq` of a change that is the first event of a new instant."""
        self.eff_ms = self.seen_ms = ts_ms
        self.ordinal, self.first_seen, self.seen = 0, what, None
        return ts_ms << ids.ORDINAL_BITS

    def next_seq(self, ts_ms: int) -> int:
        """Return the `seq` of this token's next event."""
        if ts_ms > self.eff_ms:
            self.eff_ms = ts_ms
            self.ordinal = 0
            return ts_ms << ids.ORDINAL_BITS
        self.ordinal += 1
        return ids.seq(self.eff_ms, self.ordinal)

    def nth(self, what: object, ts_ms: int) -> int:
        """Return how often the same change came before at this instant."""
        if ts_ms != self.seen_ms:
            self.seen_ms, self.first_seen, self.seen = ts_ms, what, None
            return 0
        if self.seen is None:
            self.seen = {self.first_seen: 1}
        n = self.seen.get(what, 0)
        self.seen[what] = n + 1
        return n

    def complete_since(self, ms: int) -> bool:
        """Return whether nothing was missed since an instant of our clock."""
        return self.complete_since_ms is not None and self.complete_since_ms <= ms

    def price(self, volume_24h_usd: int | None) -> LivePrice:
        """Return the current live price."""
        return LivePrice(
            self.token,
            self.bid,
            self.ask,
            self.bid_size,
            self.ask_size,
            self.last,
            self.last_ms,
            self.priced_ms,
            volume_24h_usd,
        )

    def live_book(self) -> LiveBook:
        """Return the current live book."""
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
            self.book.anchored_ms,
            self.book.state == "verified",
            self.needs_snapshot,
        )
