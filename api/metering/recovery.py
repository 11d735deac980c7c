"""Proves that an account's owner receives mail at its address: single-use links that verify it, or recover a key."""

from __future__ import annotations

import hashlib
import secrets
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal, NamedTuple

from api.metering import keys
from api.metering.mail import MailQueue, MailServer
from sql import audit
from sql.queries import accounts as queries
from sql.queries import keys as key_queries
from sql.queries import metering

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Connection, Pool

Purpose = Literal["verify", "recover"]
VALID_FOR = {"verify": timedelta(days=1), "recover": timedelta(hours=1)}
MAILS_A_DAY = 3  # to one address
TEXTS: dict[Purpose, tuple[str, str]] = {
    "verify": (
        "Confirm your email address",
        (
            "A key of the Presage API was registered with this email address.\n\nIf that was you, confirm the address "
            "within a day, so that you can recover a lost key:\n\n{link}\n\nOtherwise ignore this mail.\n"
        ),
    ),
    "recover": (
        "Recover your API key",
        (
            "Somebody asked to recover the Presage API key of this email address.\n\nIf that was you, get a new key "
            "within an hour; it replaces your newest one:\n\n{link}\n\nOtherwise ignore this mail: nothing changes.\n"
        ),
    ),
}


class InvalidToken(ValueError):  # noqa: N818 (says what it is)
    """The token is unknown, used or expired, or its account is closed."""


class Confirmed(NamedTuple):
    """What a token has done: the new key, if it recovers one, and the key that this replaced."""

    purpose: Purpose
    account_id: int
    key: str | None = None
    key_id: int | None = None
    replaced_id: int | None = None
    former_account_id: int | None = None


class Recovery:
    """Mails single-use links, and does what they are for."""

    def __init__(self, pool: Pool, server: MailServer, site_url: str, clock: Callable[[], float]) -> None:
        self._pool, self._server, self._url, self._clock = pool, server, site_url.rstrip("/"), clock
        self._queue = MailQueue()

    def mail(self, email: str, purpose: Purpose, origin: str) -> None:
        """Mail a link to an account's address, if there is such an account; return before that is known."""
        self._queue.put(lambda: self._mail(email, purpose, origin))

    def _mail(self, email: str, purpose: Purpose, origin: str) -> None:
        now = datetime.fromtimestamp(self._clock(), UTC)
        token = secrets.token_urlsafe(32)
        with self._pool.connection() as conn, conn.transaction():
            account_id = queries.open_account(conn, email=email)
            if account_id is None:
                return
            subject = f"mail {hashlib.sha256(email.encode()).hexdigest()[:32]}"
            today = now.replace(hour=0, minute=0, second=0, microsecond=0)
            if metering.registered(conn, address=subject, day=today) > MAILS_A_DAY:
                return
            queries.forget_tokens(conn, now=now)
            queries.put_token(
                conn,
                token_hash=keys.digest(token),
                account_id=account_id,
                purpose=purpose,
                expires_at=now + VALID_FOR[purpose],
            )
            entry = audit.Entry("account.mail", account_id=account_id, address=origin, subject=purpose)
            audit.add(conn, entry)
        audit.report(entry)
        title, text = TEXTS[purpose]
        self._server.send(email, title, text.format(link=f"{self._url}/confirm?token={token}"))

    def confirm(self, conn: Connection, token: str) -> Confirmed:
        """Use a token; raise InvalidToken if it cannot be used."""
        with conn.transaction():
            now = datetime.fromtimestamp(self._clock(), UTC)
            taken = queries.take_token(conn, token_hash=keys.digest(token), now=now)
            if taken is None:
                raise InvalidToken
            account_id, purpose, verified = taken
            if purpose == "verify":
                queries.verify(conn, account_id=account_id)
                return Confirmed("verify", account_id)
            return self._recovered(conn, account_id, verified=verified)

    def _recovered(self, conn: Connection, account_id: int, *, verified: bool) -> Confirmed:
        """Replace the account's newest key; the owner of an address that was never verified gets a new account."""
        key = keys.PREFIX + secrets.token_urlsafe(32)
        made = {"key_hash": keys.digest(key), "prefix": key[: keys.PREFIX_CHARS]}
        newest = queries.newest_key(conn, account_id=account_id) if verified else None
        if newest is not None:
            key_queries.replace(conn, key_id=newest, **made)
            return Confirmed("recover", account_id, key, newest, newest)
        former = None
        if not verified:
            former, account_id = account_id, queries.renew(conn, account_id=account_id)
        key_id, *_ = key_queries.insert_key(conn, account_id=account_id, tier="free", **made)
        return Confirmed("recover", account_id, key, key_id, former_account_id=former)
