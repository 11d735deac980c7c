"""The key by which the site asks our own API: random, held in memory only, and a new one each hour."""

from __future__ import annotations

import hashlib
import secrets
import time
from typing import TYPE_CHECKING

from api.metering import keys
from sql import database
from sql.queries import keys as key_queries
from sql.queries import site as queries

if TYPE_CHECKING:
    from collections.abc import Callable

ACCOUNT = "site"  # no email address, so that nobody can register for it
TIER = "enterprise"  # without limits
RENEWED_AFTER_S = 3600.0  # half the time that the database takes it for valid; see `site.sql`
AT_MOST_EACH_S = 5.0  # however often it is refused


class Credentials:
    """The site's own key. Keys of processes that have ended go by themselves, so that any number may run."""

    def __init__(self, database_url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._url, self._clock = database_url, clock
        self._key = ""
        self._made_at = -RENEWED_AFTER_S

    def key(self) -> str:
        """Give the key; asks the database when it is time for another, so call it in a thread."""
        if not self._key or self._clock() - self._made_at >= RENEWED_AFTER_S:
            self._renew()
        return self._key

    def refused(self, key: str) -> bool:
        """Hear that a key was refused; tell whether another one is worth a try."""
        if key == self._key and self._clock() - self._made_at >= AT_MOST_EACH_S:
            self._key = ""
        return key != self._key

    def _renew(self) -> None:
        key = keys.PREFIX + secrets.token_urlsafe(32)
        with database.connect(self._url, name="presage site") as conn:
            queries.renew(conn, account=ACCOUNT, tier=TIER, key_hash=keys.digest(key), prefix=key[: keys.SHOWN])
        self._key, self._made_at = key, self._clock()

    def secret(self) -> bytes:
        """Give what signs the pages' passes: the same for all processes of a deployment, and for nothing else."""
        with database.connect(self._url, name="presage site") as conn:
            known = str(key_queries.cursor_secret(conn))
        return hashlib.sha256(b"passes of pages " + known.encode()).digest()

    def tiers(self) -> list[tuple[str, int | None, int | None, int | None, int | None, int | None]]:
        """List the tiers: name, credits a month and a second, keys, webhooks, streams; None is by agreement."""
        with database.connect(self._url, name="presage site") as conn:
            return list(queries.tiers(conn))
