"""The site's own API key: random, held in memory only, renewed each hour."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from api.metering import keys
from sql import database
from sql.queries import site as queries

if TYPE_CHECKING:
    from collections.abc import Callable

RENEWAL_INTERVAL_S = 3600.0  # half the validity that the database gives it; see `site.sql`
MIN_RENEWAL_INTERVAL_S = 5.0  # however often it is refused


class Credentials:
    """The site's own key. Keys of ended processes expire by themselves, so any number of processes may run."""

    def __init__(self, database_url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url, self._clock = database_url, clock
        self._key = ""
        self._made_at = -RENEWAL_INTERVAL_S

    def key(self) -> str:
        """Return the key; may query the database to renew it, so call it in a thread."""
        if not self._key or self._clock() - self._made_at >= RENEWAL_INTERVAL_S:
            self._renew()
        return self._key

    def mark_refused(self, key: str) -> bool:
        """Record that a key was refused; return whether a retry with another key is worthwhile."""
        if key == self._key and self._clock() - self._made_at >= MIN_RENEWAL_INTERVAL_S:
            self._key = ""
        return key != self._key

    def _renew(self) -> None:
        key = keys.PREFIX + secrets.token_urlsafe(32)
        with database.connect(self._url, name="presage site") as conn:
            queries.renew(conn, key_hash=keys.digest(key), prefix=key[: keys.PREFIX_CHARS])
        self._key, self._made_at = key, self._clock()

    def secrets(self) -> list[bytes]:
        """Return the secrets of page passes, newest first: shared by all processes of a deployment.

        They are derived from those of cursors, with which they are rotated, and used for nothing else.
        """
        with database.connect(self._url, name="presage site") as conn:
            return [bytes(secret) for (secret,) in queries.page_pass_secrets(conn)]

    def tiers(self) -> list[tuple[str, int | None, int | None, int | None, int | None, int | None]]:
        """List the tiers: name, credits a month and a second, keys, webhooks, streams; None means by agreement."""
        with database.connect(self._url, name="presage site") as conn:
            return list(queries.tiers(conn))
