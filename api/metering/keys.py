"""Issues, finds and rotates API keys. A key is shown once; only its SHA-256 is stored."""

from __future__ import annotations

import hashlib
import secrets
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

import email_validator
import psycopg
from cachetools import TTLCache

from api.errors import Problem
from api.metering.key import Key
from sql.queries import accounts
from sql.queries import keys as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    import falcon

    from api.data.pool import Pool
    from api.metering.credit_ledger import CreditLedger
    from api.metering.key_filter import KeyFilter

PREFIX = "psg_"
PREFIX_CHARS = 12  # characters of a key that are stored for display
KNOWN_TTL_S, UNKNOWN_TTL_S = 30.0, 60.0  # how long a worker caches a valid key, and an unknown one
OUTAGE_TTL_S = 120.0  # how long a key is taken for valid that cannot be looked up, as the database is away
MAX_KEYS = 20_000
FOLLOW_S = 2.0  # how long the first requests of a worker wait until it knows which keys are valid


class RegistrationRefused(ValueError):  # noqa: N818 (says what it is)
    """The email address cannot have a key."""

    def __init__(self, message: str = "", account_id: int | None = None) -> None:
        super().__init__(message)
        self.account_id = account_id


class AccountClosed(RegistrationRefused):
    """The operator has revoked the keys of the address's account."""


class KeyLimitReached(RegistrationRefused):
    """The account has as many keys as its tier allows."""


class IssuedKey(NamedTuple):
    """A key that was issued, with its monthly and burst credits."""

    key: str
    credits_month: int | None
    credits_burst: int | None
    account_id: int
    key_id: int


class Failure(NamedTuple):
    """Why a key is not valid, and whose it was."""

    result: str
    account_id: int | None = None
    key_id: int | None = None


UNKNOWN = Failure("unknown")
UNCHECKED = Failure("unchecked")  # beyond the address's budget, or no connection was free: not in the filter at least


def normalised(email: str) -> str:
    """Return the normalised form of an email address; raise ValueError if it is not valid."""
    checked = email_validator.validate_email(email.strip(), check_deliverability=False)
    return checked.normalized.casefold()


def digest(key: str) -> bytes:
    """Return the stored hash of a key; 256 random bits need no slow hash."""
    return hashlib.sha256(key.encode()).digest()


def create(
    conn: psycopg.Connection[Any], email: str, app_name: str, tier: str = "free", use_case: str | None = None
) -> str:
    """Issue a key as the operator says: for the account of an email address, or a new one if that was closed.

    Raises KeyLimitReached if the tier allows no more.
    """
    with conn.transaction():
        holder = accounts.holder(conn, email=email)
        if holder is not None and holder[1]:
            accounts.detach(conn, account_id=holder[0])
        account = queries.account(conn, email=email, app_name=app_name, use_case=use_case)
        if not queries.room_for_key(conn, account_id=account, tier=tier):
            raise KeyLimitReached(f"{email} has all the keys that the {tier} tier allows", account)
        return _issue(conn, account, tier).key


def register(conn: psycopg.Connection[Any], email: str, app_name: str, use_case: str | None = None) -> IssuedKey:
    """Issue a key of the free tier for a new account.

    Whoever registers has not proven to own the address: an account that has it is never given to them. Raises
    KeyLimitReached if it has a valid key, AccountClosed if the operator has revoked its keys.
    """
    with conn.transaction():
        holder = accounts.holder(conn, email=email)
        if holder is not None:
            account, closed, active = holder
            if closed:
                raise AccountClosed(account_id=account)
            if active:
                raise KeyLimitReached(account_id=account)
            accounts.detach(conn, account_id=account)
        account = accounts.create(conn, email=email, app_name=app_name, use_case=use_case)
        if account is None:  # another registration was first
            raise KeyLimitReached
        return _issue(conn, account, "free")


def _issue(conn: psycopg.Connection[Any], account_id: int, tier: str) -> IssuedKey:
    key = PREFIX + secrets.token_urlsafe(32)
    key_id, month, burst = queries.insert_key(
        conn, account_id=account_id, key_hash=digest(key), prefix=key[:PREFIX_CHARS], tier=tier
    )
    return IssuedKey(key, month, burst, account_id, key_id)


def rotate(conn: psycopg.Connection[Any], old: str) -> str | None:
    """Replace a key by a new one with the same tier, limits and usage; None if it is not valid."""
    key = PREFIX + secrets.token_urlsafe(32)
    replaced = queries.rotate(conn, old_hash=digest(old), key_hash=digest(key), prefix=key[:PREFIX_CHARS])
    return None if replaced is None else key


class Keys:
    """Key lookup with caches of recent keys and of unknown ones.

    Keys that the filter does not hold may be unknown: they are charged to their address and looked up over a pool of
    their own, so that customers never wait for them. The filter only chooses the way; the database says what is valid.
    """

    def __init__(
        self,
        pool: Pool,
        ledger: Callable[[], CreditLedger],
        clock: Callable[[], float] = time.monotonic,
        *,
        unauthenticated: Pool | None = None,
        admit: Callable[[falcon.Request], object] = lambda _: None,
        failed: Callable[[falcon.Request, Failure], object] = lambda *_: None,
    ) -> None:
        self._pool, self._ledger, self._unauthenticated, self._admit = pool, ledger, unauthenticated or pool, admit
        self._failed = failed
        self._known: TTLCache[bytes, Key, float] = TTLCache(MAX_KEYS, KNOWN_TTL_S, clock)
        # Valid when they were looked up, and when that was: for requests while the database is away.
        self._looked_up: TTLCache[bytes, tuple[Key, float], float] = TTLCache(MAX_KEYS, OUTAGE_TTL_S, clock)
        self._clock = clock
        # Separate, so that guesses do not evict valid keys.
        self._unknown: TTLCache[bytes, Failure, float] = TTLCache(MAX_KEYS, UNKNOWN_TTL_S, clock)
        self._filter: KeyFilter | None = None
        self._following = threading.Event()
        self._await_until = 0.0
        self._changes = 0

    def of(self, text: str | None, req: falcon.Request | None = None) -> Key:
        """Return a valid key; raise `invalid_api_key` otherwise, `burst_exceeded` beyond the address's budget."""
        key = self.find(text, req)
        if key is None:
            raise Problem(
                "invalid_api_key",
                "The X-API-Key header is missing" if not text else "The API key is not valid",
                hint="POST /register issues a key; send it as X-API-Key",
                headers={"WWW-Authenticate": 'ApiKey realm="presage", header="X-API-Key"'},
            )
        return key

    def find(self, text: str | None, req: falcon.Request | None = None) -> Key | None:
        """Return a valid key, or None; a request with an invalid one is charged to its address."""
        if not text:
            self._charge(req, None)
            return None
        if len(text) > 200:
            self._charge(req, UNKNOWN)
            self._refuse(req, UNKNOWN)
            return None
        hashed = digest(text)
        try:
            known = self._known[hashed]
        except KeyError:
            pass
        else:
            if self._is_current(known):
                return known
        return self._find_cold(hashed, req)

    def _is_current(self, key: Key) -> bool:
        """Return whether a key has not ended or changed since it was looked up, as far as this host knows."""
        return self._ledger().generation(key.key_id) == key.generation

    def _find_cold(self, hashed: bytes, req: falcon.Request | None) -> Key | None:
        if self._filter is None and (wait_s := self._await_until - time.monotonic()) > 0:
            self._following.wait(wait_s)
        may_be_unknown = self._filter is not None and hashed not in self._filter
        failure = self._unknown.get(hashed)
        if may_be_unknown or failure is not None:
            self._charge(req, failure or UNCHECKED)
        if failure is not None:
            self._refuse(req, failure)
            return None
        changes = self._changes
        try:
            found = self._look_up(hashed, self._unauthenticated if may_be_unknown else self._pool)
        except (psycopg.Error, Problem):
            last = self._last_known(hashed)
            if last is None and may_be_unknown:
                self._refuse(req, UNCHECKED)
            if last is None:
                raise
            return last
        if isinstance(found, Key):
            self._known[hashed] = found
            self._looked_up[hashed] = found, self._clock()
            return found
        self._known.pop(hashed, None)
        self._looked_up.pop(hashed, None)
        if not may_be_unknown:
            self._charge(req, found)
        if changes == self._changes and (self._filter is None or self._following.is_set()):
            self._unknown[hashed] = found
        self._refuse(req, found)
        return None

    def _last_known(self, hashed: bytes) -> Key | None:
        """Return a key that was valid at its last look-up, within OUTAGE_TTL_S, and is not known to have ended."""
        last, at = self._looked_up.get(hashed, (None, 0.0))
        if last is None or not self._is_current(last):
            return None
        if self._clock() - at <= OUTAGE_TTL_S - KNOWN_TTL_S:
            self._known[hashed] = last  # so that not every request tries to look it up
        return last

    def end(self, key_id: int) -> None:
        """Invalidate a key in every worker of the host, before the next request is admitted with it."""
        self._ledger().end(key_id)

    # --- Following changes

    def await_filter(self) -> None:
        """Have the first lookups wait a moment for the filter of valid keys."""
        self._await_until = time.monotonic() + FOLLOW_S

    def follow(self, valid: KeyFilter) -> None:
        """Trust the caches: from now on, changes are notified."""
        self._filter = valid
        self._changes += 1
        self._known.clear()
        self._looked_up.clear()
        self._unknown.clear()
        self._following.set()

    def changed(self, digest: bytes) -> None:
        """Look up a new or changed key anew."""
        self._changes += 1
        self._unknown.pop(digest, None)

    def unfollowed(self) -> None:
        """Remember no unknown keys until changes are notified again.

        Valid ones are remembered for KNOWN_TTL_S, and for OUTAGE_TTL_S while none can be looked up.
        """
        self._following.clear()
        self._changes += 1
        self._unknown.clear()

    def _charge(self, req: falcon.Request | None, failure: Failure | None) -> None:
        if req is None:
            return
        try:
            self._admit(req)
        except Problem:
            if failure is not None:
                self._failed(req, failure)
            raise

    def _refuse(self, req: falcon.Request | None, failure: Failure) -> None:
        if req is not None:
            self._failed(req, failure)

    @staticmethod
    def _failure(hashed: bytes, pool: Pool) -> Failure:
        """Return why a key is not valid, as far as the database says."""
        try:
            ended = pool.read(lambda conn: queries.ended(conn, key_hash=hashed))
        except (psycopg.Error, Problem):  # it is invalid all the same
            return UNKNOWN
        return UNKNOWN if ended is None else Failure(*ended)

    def _look_up(self, hashed: bytes, pool: Pool) -> Key | Failure:
        ledger = self._ledger()
        while True:
            ended = ledger.ended
            row = pool.read(lambda conn: queries.by_hash(conn, key_hash=hashed))
            if row is None:
                return self._failure(hashed, pool)
            key_id, tier, month, burst, connections, account_id = row
            key = Key(key_id, tier, month, burst, connections, ledger.generation(key_id), account_id)
            if ledger.ended == ended:  # otherwise it may have been revoked after it was read
                return key
