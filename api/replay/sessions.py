"""The replays that one worker plays: each to a socket of its own, at the pace at which it is read."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple

import gevent
import psycopg

from api.errors import Problem
from api.stream.frames import GOING_AWAY, NORMAL, NOT_ALLOWED, TRY_LATER, Gone, frame
from api.stream.socket import PING

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.replay.player import Player
    from api.stream.socket import Socket

log = logging.getLogger("presage.replay")

ROOM = 256 << 10  # bytes that may be owed to a client
TURN = 50  # messages before others get a turn
LOOK_S = 0.005
STALL_S = 30.0  # a client that takes nothing in for so long is let go
PING_S, DEAD_S = 25.0, 60.0
STOP_S = 0.3  # for a client's own close, when the server stops


class Session(NamedTuple):
    """A client, what is played to it, and whether it still may hear it."""

    socket: Socket
    player: Player
    allowed: Callable[[], bool]


class Sessions:
    """All of a worker's."""

    def __init__(self) -> None:
        self._open: set[Session] = set()
        self._looking: gevent.Greenlet | None = None
        self._stopping: int | None = None

    def run(self, session: Session, hear: Callable[[str], object]) -> None:
        """Play, and hear what the client says meanwhile; until one of both ends it."""
        self._open.add(session)
        if self._stopping is not None:
            self.stop(self._stopping)
        if self._looking is None or self._looking.dead:
            self._looking = gevent.spawn(self._look_after)
        playing = gevent.spawn(_play, session)
        try:
            while (said := session.socket.receive()) is not None:
                hear(said)
        finally:
            session.player.stop()
            session.socket.close(GOING_AWAY)  # if it went without a word: who waits for it to read need not
            self._open.discard(session)
            playing.join()

    def stop(self, code: int = GOING_AWAY) -> None:
        """Send everyone away."""
        self._stopping = code
        for session in list(self._open):
            session.player.stop()
            session.socket.close(code, "the service stops", linger_s=STOP_S)

    def _look_after(self) -> None:
        """Ping, and send those away whose key has ended."""
        while self._open:
            gevent.sleep(PING_S)
            for session in list(self._open):
                if time.monotonic() - session.socket.heard_at > DEAD_S:
                    session.socket.hang_up()
                    continue
                session.socket.push(PING)
                try:
                    if not session.allowed():
                        session.socket.close(NOT_ALLOWED, "the key is no longer valid")
                except (psycopg.Error, Problem):
                    continue  # not to be known right now; the next look is soon


def sender(socket: Socket) -> Callable[[bytes], None]:
    """Give what sends a message, and waits until there is room for another."""
    since_turn = 0

    def send(message: bytes) -> None:
        nonlocal since_turn
        if socket.closed:
            raise Gone
        socket.push(frame(message))
        since_turn += 1
        if socket.owed > ROOM:
            _await(socket, ROOM // 2)
        elif since_turn >= TURN:
            since_turn = 0
            gevent.sleep(0)

    return send


def _await(socket: Socket, most: int) -> None:
    """Wait until no more than that is owed."""
    owed, moved_at = socket.owed, time.monotonic()
    while socket.owed > most:
        gevent.sleep(LOOK_S)
        if socket.closed:
            raise Gone
        if socket.owed != owed:
            owed, moved_at = socket.owed, time.monotonic()
        elif time.monotonic() - moved_at > STALL_S:
            socket.let_go()
            raise Gone


def _play(session: Session) -> None:
    socket = session.socket
    try:
        ended = session.player.play()
        _await(socket, 0)
    except Gone:
        return
    except (psycopg.Error, Problem) as error:
        log.warning("a replay is interrupted: %s", error)
        socket.close(TRY_LATER, "the past cannot be read right now")
    except Exception:
        log.exception("a replay failed")
        socket.close(TRY_LATER, "the replay failed")
    else:
        if ended:
            socket.close(NORMAL, "the replay is over")
        else:
            socket.close(NOT_ALLOWED, "nothing was subscribed to")
