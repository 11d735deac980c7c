"""Handles the commands that a client sends on the stream."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import msgspec
import psycopg

from api.data import pool
from api.errors import Problem
from api.stream import messages
from api.stream.messages import MAX_FOLLOWED, MAX_MARKETS, MAX_WALLETS
from sql.queries import stream as queries

if TYPE_CHECKING:
    from api.service import Service
    from api.stream.subscriber import Subscriber, SubscriptionFilter

CONDITION = re.compile(r"0x[0-9a-f]{64}\Z")
COST = 4.0  # of a command in addition to its frame; see `frames.ReadRateLimiter`
NAMES_A_TOKEN = 50


class CommandHandler:
    """Handles the commands of one client."""

    def __init__(self, service: Service, subscriber: Subscriber) -> None:
        self._service, self._hub, self._subscriber = service, service.hub, subscriber

    def handle(self, text: str) -> None:
        """Execute a client's command, or send it an error."""
        try:
            self._execute(text)
        except Problem as error:
            self._subscriber.send(messages.error(error.problem, error.description or ""))
        except psycopg.Error as error:
            problem = pool.problem_for(error)
            if problem is None:
                raise
            self._subscriber.send(messages.error(problem.problem, f"{problem.description}: retry"))
        self._hub.check(self._subscriber)

    def _execute(self, text: str) -> None:
        try:
            command = messages.decode(text)
        except msgspec.ValidationError as error:
            raise Problem("invalid_parameter", str(error)) from None
        except (msgspec.DecodeError, RecursionError):
            raise Problem("invalid_body", "Expected a JSON object with an `action`") from None
        match command:
            case messages.Ping():
                seq = self._hub.delivered_up_to(self._subscriber)
                self._subscriber.send(messages.encode("pong", seq=seq, ts=int(time.time() * 1000)))
            case messages.Subscribe():
                self._subscribe(command)
            case messages.Unsubscribe():
                wants = self._subscriber.wants.less(self._market_ids(command.markets))
                self._confirm(wants, self._subscriber.wallets)
                self._hub.restart(self._subscriber, wants)
            case messages.SubscribeWallet():
                self._follow(frozenset(bytes.fromhex(wallet[2:]) for wallet in command.wallets))
            case messages.UnsubscribeWallet():
                given = None if command.wallets is None else {bytes.fromhex(wallet[2:]) for wallet in command.wallets}
                left = frozenset() if given is None else self._subscriber.wallets - given
                self._confirm(self._subscriber.wants, left)
                self._hub.follow(self._subscriber, left)

    def _subscribe(self, command: messages.Subscribe) -> None:
        if command.exchange is not None and command.markets is not None:
            raise Problem("invalid_parameter", "`exchange` is for all markets of an exchange, without `markets`")
        wants = self._subscriber.wants.more(self._market_ids(command.markets), command.types, command.exchange)
        if len(wants.markets or ()) > MAX_MARKETS:
            raise Problem("invalid_parameter", f"At most {MAX_MARKETS} markets, or all")
        self._confirm(wants, self._subscriber.wallets)
        if command.resume_from is None:
            self._hub.restart(self._subscriber, wants)
        else:
            self._hub.resume(self._subscriber, wants, command.resume_from)

    def _follow(self, wallets: frozenset[bytes]) -> None:
        """Capture the activity of wallets from now on, watched or not, and deliver it to this client."""
        wanted = self._subscriber.wallets | wallets
        if len(wanted) > MAX_WALLETS:
            raise Problem("invalid_parameter", f"At most {MAX_WALLETS} wallets")
        asked = {"account_id": self._subscriber.account_id, "wallets": sorted(wallets), "most": MAX_FOLLOWED}
        with self._service.writes.connection() as conn:
            if not queries.follow(conn, **asked):
                raise Problem("invalid_parameter", f"The account has followed {MAX_FOLLOWED} wallets within a day")
        self._confirm(self._subscriber.wants, wanted)
        self._hub.follow(self._subscriber, wanted)

    def _confirm(self, wants: SubscriptionFilter, wallets: frozenset[bytes]) -> None:
        """Send the current subscription."""
        listed = {
            "markets": "all" if wants.markets is None else sorted(wants.markets),
            **({} if wants.markets is not None else {"exchange": wants.exchange}),
            "types": "all" if wants.types is None else sorted(wants.types),
            "wallets": sorted(f"0x{wallet.hex()}" for wallet in wallets),
        }
        self._subscriber.send(messages.encode("subscribed", **listed))
        self._subscriber.socket.reader.pace.spend(COST + (len(wants.markets or ()) + len(wallets)) / NAMES_A_TOKEN)

    def _market_ids(self, given: list[str] | None) -> list[str] | None:
        """Return condition ids; look up slugs and the exchange's numeric ids."""
        if given is None:
            return None
        found = {name: name for name in map(str.lower, given) if CONDITION.match(name)}
        others = [name for name in given if name.lower() not in found]
        if any("\0" in name for name in others):
            raise Problem("not_found", "No such market")
        if others:
            found |= dict(
                self._service.reads.read(lambda conn: [tuple(row) for row in queries.market_ids(conn, ids=others)])
            )
            if missing := [name for name in others if name not in found]:
                raise Problem("not_found", f"No such market: {', '.join(missing[:10])[:300]}")
        return list(dict.fromkeys(found.values()))
