"""Keeps the wallets that stream subscribers follow captured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sql.queries import stream as queries

if TYPE_CHECKING:
    from api.data.pool import Pool


def keep_following(writes: Pool, followed: list[tuple[int, bytes]]) -> None:
    """Extend the capture of open connections' wallets by a day."""
    accounts, wallets = zip(*followed, strict=True)
    with writes.connection() as conn:
        queries.keep_following(conn, accounts=list(accounts), wallets=list(wallets))
