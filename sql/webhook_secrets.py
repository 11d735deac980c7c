"""Webhook secrets are encrypted at rest, with keys that are not in the database and so not in its backups.

They sign messages, so they cannot be stored as digests. A stored secret is a Fernet token, or clear text from a time
before encryption, which begins with `whsec_`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from sql.queries import webhooks as queries

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import psycopg

CLEAR = "whsec_"
BATCH = 500  # webhooks that are locked and written in one transaction


class UnreadableSecretError(Exception):
    """A stored secret that none of the keys decrypts."""


class SecretBox:
    """Encrypts secrets with the newest key and decrypts them with any; without a key, secrets stay clear text.

    `keys` returns the keys, newest first; it is called again when a secret was encrypted with a key that is not known.
    """

    def __init__(self, keys: Callable[[], Sequence[str]] = tuple) -> None:
        self._keys = keys
        self._load()

    def __bool__(self) -> bool:
        """Return whether there is a key."""
        return bool(self._fernets)

    def encrypt(self, secret: str) -> str:
        """Return a secret as it is stored."""
        return self._fernets[0].encrypt(secret.encode()).decode() if self._fernets else secret

    def decrypt(self, stored: str) -> str:
        """Return a stored secret in clear; raise UnreadableSecretError if it cannot be decrypted."""
        if stored.startswith(CLEAR):
            return stored
        for load in (False, True):
            if load:
                self._load()
            with suppress(InvalidToken):
                if self._fernets:
                    return MultiFernet(self._fernets).decrypt(stored).decode()
        raise UnreadableSecretError(
            "the secret cannot be decrypted: its key is missing in PRESAGE_WEBHOOK_ENCRYPTION_KEYS"
        )

    def is_current(self, stored: str) -> bool:
        """Return whether a stored secret is as `encrypt` would store it: with the newest key."""
        if not self._fernets:
            return stored.startswith(CLEAR)
        try:
            self._fernets[0].decrypt(stored)
        except InvalidToken:
            return False
        return True

    def _load(self) -> None:
        self._fernets = [Fernet(key) for key in self._keys()]


def sealed(conn: psycopg.Connection[Any], box: SecretBox, secret: str) -> str:
    """Return a new secret as it is to be stored; it stays so until the transaction ends.

    While the release before is still running beside this one, that is clear text.
    """
    return secret if queries.secrets_in_clear(conn) else box.encrypt(secret)


def store_all(conn: psycopg.Connection[Any], box: SecretBox, *, clear: bool = False) -> int:
    """Store all secrets encrypted with the newest key, or as clear text; return how many were changed.

    In batches, each a transaction of its own: an interrupted call is repeated, and changes what is left.
    """
    to = SecretBox() if clear else box
    (queries.store_in_clear if clear else queries.store_encrypted)(conn)
    changed, after = 0, -1
    while True:
        with conn.transaction():
            rows = list(queries.stored_secrets(conn, after=after, limit=BATCH))
            for _, webhook_id, *stored in rows:
                kept = [
                    each if each is None or to.is_current(each) else to.encrypt(box.decrypt(each)) for each in stored
                ]
                if kept != stored:
                    queries.store_secrets(conn, webhook_id=webhook_id, secret=kept[0], next_secret=kept[1])
                    changed += sum(one != other for one, other in zip(kept, stored, strict=True))
        if len(rows) < BATCH:
            return changed
        after = rows[-1][0]
