"""`/stream?replay_from=`: a stretch of the past in the words of the stream."""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Any

import gevent
import msgspec
import psycopg

from api.data import pool
from api.data.statements import run
from api.errors import Problem
from api.replay.history import Course
from api.replay.player import Player, Span
from api.replay.sessions import Session, sender
from api.replay.span import span_of
from api.replay.stream_encoder import TYPES, Words
from api.stream import messages
from api.stream.frames import frame
from sql.queries import books

if TYPE_CHECKING:
    from api.metering.key import Key
    from api.replay.history import Place
    from api.schemas.requests import Connect
    from api.service import Service
    from api.stream.socket import Socket

MOST_MARKETS = 100  # of one replay


def serve(service: Service, socket: Socket, given: Connect, key: Key) -> None:  # noqa: ARG001
    """Play until the end, or until the client goes."""
    span = span_of(given.replay_from, given.replay_to, given.speed)
    assert span is not None
    replay = Replay(service, socket, span, given.resume_from or 0)
    keys, text = service.keys, given.api_key
    replay.say("hello", session=secrets.token_hex(8), seq=given.resume_from or 0, oldest_seq=1, **_said(span))
    service.replays.run(Session(socket, replay.player, lambda: keys.find(text) is not None), replay.hear)


def _said(span: Span) -> dict[str, Any]:
    """Say what is played."""
    since, until = (round(instant.timestamp() * 1000) for instant in (span.since, span.until))
    return {"replay": {"from": since, "to": until, "speed": span.speed}, "ts": int(time.time() * 1000)}


class Replay:
    """One client's, and what it wishes."""

    def __init__(self, service: Service, socket: Socket, span: Span, after: int) -> None:
        self._service, self._socket, self._span = service, socket, span
        self._words = Words()
        self._words.after = after
        self._course = Course(self._rows, lambda: gevent.sleep(0))
        self._places: dict[str, list[Place]] = {}  # by market
        self.player = Player(self._course, self._words, span, sender(socket), self._completed)

    def say(self, kind: str, **said: Any) -> None:
        """Say something that is not of the past."""
        self._socket.push(frame(messages.say(kind, **said)))

    def hear(self, text: str) -> None:
        """Do what a client asks, or tell it why not."""
        try:
            self._heed(messages.read(text))
        except msgspec.ValidationError as error:
            self._refuse(Problem("invalid_parameter", str(error)))
        except (msgspec.DecodeError, RecursionError):
            self._refuse(Problem("invalid_body", "Expected a JSON object with an `action`"))
        except Problem as error:
            self._refuse(error)
        except psycopg.Error as error:
            problem = pool.answer(error)
            if problem is None:
                raise
            self._refuse(problem)

    def _heed(self, wish: messages.Wish) -> None:
        match wish:
            case messages.Ping():
                self.say("pong", seq=self._words.seq, ts=int(time.time() * 1000))
            case messages.Subscribe(markets=list(names)):
                if wrong := set(wish.types or ()) - set(TYPES):
                    raise Problem(
                        "invalid_parameter",
                        f"`types`: {', '.join(sorted(wrong))} cannot be replayed",
                        hint=f"Allowed: {', '.join(TYPES)}",
                    )
                if any("\0" in name for name in names):
                    raise Problem("not_found", "No such market")
                found: dict[str, list[Place]] = {}
                for place in self._course.of_markets(name.lower() if name[:2] == "0x" else name for name in names):
                    found.setdefault(place.market_id, []).append(place)
                if not found:
                    raise Problem("not_found", "No such market")
                if len({*self._places, *found}) > MOST_MARKETS:
                    raise Problem("invalid_parameter", f"At most {MOST_MARKETS} markets")
                self._places |= found
                self.player.wish(lambda: self._follow(found, wish.types, wish.resume_from))
            case messages.Unsubscribe():
                gone = [*self._places] if wish.markets is None else [each.lower() for each in wish.markets]
                tokens = [place.token_id for name in gone for place in self._places.pop(name, ())]
                self.player.wish(lambda: self.player.leave(tokens))
                self.player.wish(self._subscribed)
            case messages.Subscribe():
                raise Problem("invalid_parameter", "`markets`: a replay is of markets that you name")
            case _:
                raise Problem("invalid_parameter", "`action`: wallets cannot be replayed")

    def _follow(self, found: dict[str, list[Place]], types: list[Any] | None, after: int | None) -> None:
        if types is not None:
            self._words.types = frozenset(types)
        if after is not None:
            self._words.after = after
        self._subscribed()
        self.player.follow(place for places in found.values() for place in places)

    def _subscribed(self) -> None:
        self.say("subscribed", markets=sorted(self._places), types=sorted(self._words.types), wallets=[])

    def _completed(self) -> None:
        """Say that this was all, and which stretches of it may lack changes of books."""
        span, gaps = {"since": self._span.since, "until": self._span.until}, set()
        for market_key in {place.market_key for places in self._places.values() for place in places}:
            gaps.update(self._rows(books.gaps, market_key=market_key, **span))
        told = [{"from_ts": since, "to_ts": until, "cause": cause} for since, until, cause in sorted(gaps)]
        self.say("replay_completed", seq=self._words.seq, complete=not gaps, gaps=told)

    def _refuse(self, problem: Problem) -> None:
        self.say("error", code=problem.problem, detail=problem.description or "")

    def _rows(self, query: Any, **arguments: Any) -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = self._service.reads.read(lambda conn: run(conn, query, arguments))
        return rows
