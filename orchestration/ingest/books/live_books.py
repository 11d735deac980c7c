"""Live books to write: at once when one becomes right or wrong, otherwise after many changes or some time.

Whether a book is verified is decided in `order_book.py`. `live_books` need not hold the newest changes: the view
`book_current` adds those stored in `book_events` since.
"""

from collections import deque
from itertools import islice

import msgspec

from orchestration.ingest.books.token_state import TokenState
from orchestration.ingest.storage.rows import LiveBook, Token

MAX_UNWRITTEN_CHANGES = 64  # that readers of the view have to add to a book
MAX_BOOKS_PER_COMMIT = 1_000  # the others wait for the next one


class DueBooks(msgspec.Struct):
    """Live books to write, tokens whose live book is no longer right, and the states of both."""

    books: list[LiveBook] = []
    unverified: list[Token] = []
    states: list[TokenState] = []


class LiveBookQueue:
    """Collects states whose live book is to be written; its work does not grow with the books that do not change."""

    def __init__(self) -> None:
        self._verified: dict[str, TokenState] = {}  # to write with the next commits
        self._unverified: dict[str, TokenState] = {}
        self._changed: deque[tuple[int, TokenState]] = deque()  # since when (our clock) they have unwritten changes

    def add(self, state: TokenState) -> None:
        """Write this book with the next commit, or mark it unverified."""
        (self._verified if state.book.state == "verified" else self._unverified)[state.token.token_id] = state

    def changed(self, state: TokenState, changes: int, now_ms: int) -> None:
        """Count changes of a verified book."""
        if not state.unwritten:
            state.unwritten_since_ms = now_ms
            self._changed.append((now_ms, state))
        state.unwritten += changes
        if state.unwritten >= MAX_UNWRITTEN_CHANGES:
            self._verified[state.token.token_id] = state

    def take(self, before_ms: int, *, books: bool = True) -> DueBooks:
        """Return what to write now: also books with changes from before an instant of our clock.

        Without `books`, only which are no longer right.
        """
        changed = self._changed
        while changed and changed[0][0] <= before_ms:
            since_ms, state = changed.popleft()
            if state.unwritten and state.unwritten_since_ms == since_ms:  # otherwise written meanwhile
                self.add(state)
        due = DueBooks()
        unverified, self._unverified = self._unverified, {}
        for state in unverified.values():
            if state.book.state == "verified":
                self.add(state)
                continue
            if state.shown_verified is not False:
                due.unverified.append(state.token)
                due.states.append(state)
            state.shown_verified = False
        for token_id in list(islice(self._verified, MAX_BOOKS_PER_COMMIT if books else 0)):
            state = self._verified.pop(token_id)
            if state.book.state != "verified":
                self.add(state)  # marked with the next commit
                continue
            due.books.append(state.live_book())
            due.states.append(state)
            state.needs_snapshot, state.shown_verified, state.unwritten = False, True, 0
        return due

    def put_back(self, states: list[TokenState]) -> None:
        """Write these again: the last attempt failed, and what is stored is unknown."""
        for state in states:
            state.needs_snapshot, state.shown_verified = True, None
            self.add(state)

    def take_over(self, state: TokenState, *, shown_verified: bool, unwritten_after_ms: int) -> None:
        """Continue from what a former leader stored: it wrote all changes from before an exchange timestamp."""
        state.needs_snapshot, state.shown_verified = False, shown_verified
        self._verified.pop(state.token.token_id, None)
        self._unverified.pop(state.token.token_id, None)
        if (state.book.state == "verified") != shown_verified:
            self.add(state)
        elif state.book_ms < unwritten_after_ms:
            state.unwritten = 0
        elif not state.unwritten:  # its last changes came in a snapshot, or with a commit that failed
            self.add(state)
