"""What a client says on the stream, done."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import msgspec
import psycopg

from api.data import pool
from api.errors import Problem
from api.stream import messages
from api.stream.messages import MOST_FOLLOWED, MOST_MARKETS, MOST_WALLETS
from sql.queries import stream as queries

if TYPE_CHECKING:
    from api.service import Service
    from api.stream.subscriber import Filter, Subscriber

CONDITION = re.compile(r"0x[0-9a-f]{64}\Z")
COST = 4.0  # of a wish beside its frame; see `frames.Pace`
NAMES_A_TOKEN = 50


class Wishes:
    """The wishes of one client."""

    def __init__(self, service: Service, subscriber: Subscriber) -> None:
        self._service, self._hub, self._subscriber = service, service.hub, subscriber

    def heed(self, text: str) -> None:
        """Do what a client asks, or tell it why not."""
        try:
            self._heed(text)
        except Problem as error:
            self._subscriber.tell(messages.error(error.problem, error.description or ""))
        except psycopg.Error as error:
            problem = pool.answer(error)
            if problem is None:
                raise
            self._subscriber.tell(messages.error(problem.problem, f"{problem.description}: ask again"))
        self._hub.check(self._subscriber)

    def _heed(self, text: str) -> None:
        try:
            wish = messages.read(text)
        except msgspec.ValidationError as error:
            raise Problem("invalid_parameter", str(error)) from None
        except (msgspec.DecodeError, RecursionError):
            raise Problem("invalid_body", "Expected a JSON object with an `action`") from None
        match wish:
            case messages.Ping():
                seq = self._hub.standing(self._subscriber)
                self._subscriber.tell(messages.say("pong", seq=seq, ts=int(time.time() * 1000)))
            case messages.Subscribe():
                self._subscribe(wish)
            case messages.Unsubscribe():
                wants = self._subscriber.wants.less(self._market_ids(wish.markets))
                self._tell(wants, self._subscriber.wallets)
                self._hub.restart(self._subscriber, wants)
            case messages.SubscribeWallet():
                self._follow(frozenset(bytes.fromhex(wallet[2:]) for wallet in wish.wallets))
            case messages.UnsubscribeWallet():
                given = None if wish.wallets is None else {bytes.fromhex(wallet[2:]) for wallet in wish.wallets}
                left = frozenset() if given is None else self._subscriber.wallets - given
                self._tell(self._subscriber.wants, left)
                self._hub.follow(self._subscriber, left)

    def _subscribe(self, wish: messages.Subscribe) -> None:
        wants = self._subscriber.wants.more(self._market_ids(wish.markets), wish.types)
        if len(wants.markets or ()) > MOST_MARKETS:
            raise Problem("invalid_parameter", f"At most {MOST_MARKETS} markets; or all")
        self._tell(wants, self._subscriber.wallets)
        if wish.resume_from is None:
            self._hub.restart(self._subscriber, wants)
        else:
            self._hub.resume(self._subscriber, wants, wish.resume_from)

    def _follow(self, wallets: frozenset[bytes]) -> None:
        """Have wallets captured from now on, whether or not anyone watches them, and told to this client."""
        wanted = self._subscriber.wallets | wallets
        if len(wanted) > MOST_WALLETS:
            raise Problem("invalid_parameter", f"At most {MOST_WALLETS} wallets")
        asked = {"account_id": self._subscriber.account_id, "wallets": sorted(wallets), "most": MOST_FOLLOWED}
        with self._service.writes.connection() as conn:
            if not queries.follow(conn, **asked):
                raise Problem("invalid_parameter", f"The account followed {MOST_FOLLOWED} wallets within a day")
        self._tell(self._subscriber.wants, wanted)
        self._hub.follow(self._subscriber, wanted)

    def _tell(self, wants: Filter, wallets: frozenset[bytes]) -> None:
        """Say what is subscribed to now."""
        listed = {
            "markets": "all" if wants.markets is None else sorted(wants.markets),
            "types": "all" if wants.types is None else sorted(wants.types),
            "wallets": sorted(f"0x{wallet.hex()}" for wallet in wallets),
        }
        self._subscriber.tell(messages.say("subscribed", **listed))
        self._subscriber.socket.reader.pace.spend(COST + (len(wants.markets or ()) + len(wallets)) / NAMES_A_TOKEN)

    def _market_ids(self, given: list[str] | None) -> list[str] | None:
        """Give condition ids; slugs and the exchange's numbers are looked up."""
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
