"""`/stream?replay_from=`: a replay of past events in the stream's message format."""

from __future__ import annotations

import secrets
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import gevent
import msgspec
import psycopg

from api.data import pool
from api.errors import Problem
from api.replay.history import HistoryReader
from api.replay.player import Player, ReplaySpan
from api.replay.sessions import ReplaySession, sender
from api.replay.span import replay_span
from api.replay.stream_encoder import TYPES, StreamEncoder
from api.stream import messages
from api.stream.frames import frame
from sql.queries import books

if TYPE_CHECKING:
    from api.endpoints.stream.requests import StreamParameters
    from api.replay.history import OutcomeRef, Rows
    from api.service import Service
    from api.stream.socket import Socket

MAX_MARKETS = 100  # of one replay


def serve(service: Service, read: Rows, socket: Socket, given: StreamParameters) -> None:
    """Play until the end of the range or until the client disconnects."""
    span = replay_span(given.replay_from, given.replay_to, given.speed)
    assert span is not None
    replay = Replay(read, socket, span, given.resume_from or 0)
    keys, text = service.keys, given.api_key
    replay.say("hello", session=secrets.token_hex(8), seq=given.resume_from or 0, oldest_seq=1, **_said(span))
    service.replays.run(ReplaySession(socket, replay.player, lambda: keys.find(text) is not None), replay.receive)


def _said(span: ReplaySpan) -> dict[str, Any]:
    """Return the `replay` and `ts` fields of the hello message."""
    since, until = (round(instant.timestamp() * 1000) for instant in (span.since, span.until))
    return {"replay": {"from": since, "to": until, "speed": span.speed}, "ts": int(time.time() * 1000)}


class Replay:
    """The replay of one client, with its subscriptions."""

    def __init__(self, read: Rows, socket: Socket, span: ReplaySpan, after: int) -> None:
        self._read, self._socket, self._span = read, socket, span
        self._encoder = StreamEncoder()
        self._encoder.after = after
        self._history = HistoryReader(read, lambda: gevent.sleep(0))
        self._places: dict[str, list[OutcomeRef]] = {}  # by market
        self.player = Player(self._history, self._encoder, span, sender(socket), self._completed)

    def say(self, kind: str, **said: Any) -> None:
        """Send a message that is not an event."""
        self._socket.push(frame(messages.encode(kind, **said)))

    def receive(self, text: str) -> None:
        """Execute a client's command, or send it an error."""
        try:
            self._execute(messages.decode(text))
        except msgspec.ValidationError as error:
            self._refuse(Problem("invalid_parameter", str(error)))
        except (msgspec.DecodeError, RecursionError):
            self._refuse(Problem("invalid_body", "Expected a JSON object with an `action`"))
        except Problem as error:
            self._refuse(error)
        except psycopg.Error as error:
            problem = pool.problem_for(error)
            if problem is None:
                raise
            self._refuse(problem)

    def _execute(self, command: messages.Command) -> None:
        match command:
            case messages.Ping():
                self.say("pong", seq=self._encoder.seq, ts=int(time.time() * 1000))
            case messages.Subscribe(markets=list(names)):
                if wrong := set(command.types or ()) - set(TYPES):
                    raise Problem(
                        "invalid_parameter",
                        f"`types`: {', '.join(sorted(wrong))} cannot be replayed",
                        hint=f"Allowed: {', '.join(TYPES)}",
                    )
                found = self._found(names)
                if len({*self._places, *found}) > MAX_MARKETS:
                    raise Problem("invalid_parameter", f"At most {MAX_MARKETS} markets")
                self._places |= found
                self.player.enqueue(partial(self._follow, found, command.types, command.resume_from))
            case messages.Unsubscribe():
                gone = [*(self._places if command.markets is None else self._found(command.markets))]
                tokens = [place.token_id for name in gone for place in self._places.pop(name, ())]
                self.player.enqueue(lambda: self.player.unfollow(tokens))
                self.player.enqueue(self._subscribed)
            case messages.Subscribe():
                raise Problem("invalid_parameter", "`markets` is required in a replay")
            case _:
                raise Problem("invalid_parameter", "`action`: wallets cannot be replayed")

    def _found(self, names: list[str]) -> dict[str, list[OutcomeRef]]:
        """Return the outcomes of the markets that exist, by condition id."""
        if any("\0" in name for name in names):
            raise Problem("not_found", "No such market")
        found: dict[str, list[OutcomeRef]] = {}
        for place in self._history.of_markets(name.lower() if name[:2] == "0x" else name for name in names):
            found.setdefault(place.market_id, []).append(place)
        if not found:
            raise Problem("not_found", "No such market")
        return found

    def _follow(self, found: dict[str, list[OutcomeRef]], types: list[Any] | None, after: int | None) -> None:
        if types is not None:
            self._encoder.types = frozenset(types)
        if after is not None:
            self._encoder.after = after
        self._subscribed()
        self.player.follow(place for places in found.values() for place in places)

    def _subscribed(self) -> None:
        self.say("subscribed", markets=sorted(self._places), types=sorted(self._encoder.types), wallets=[])

    def _completed(self) -> None:
        """Send `replay_completed`, with the time ranges in which book changes may be missing."""
        span, gaps = {"since": self._span.since, "until": self._span.until}, set()
        for market_key in {place.market_key for places in self._places.values() for place in places}:
            gaps.update(self._read(books.gaps, market_key=market_key, **span))
        ranges = [{"from_ts": since, "to_ts": until, "cause": cause} for since, until, cause in sorted(gaps)]
        self.say("replay_completed", seq=self._encoder.seq, complete=not gaps, gaps=ranges)

    def _refuse(self, problem: Problem) -> None:
        self.say("error", code=problem.problem, detail=problem.description or "")
