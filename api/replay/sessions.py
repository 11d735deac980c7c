"""The replay sessions of one worker, each paced by how fast its client reads."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, NamedTuple

import gevent
import psycopg

from api.errors import Problem
from api.stream.frames import GOING_AWAY, NORMAL, NOT_ALLOWED, TRY_LATER, ConnectionLost, frame
from api.stream.socket import PING

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.replay.player import Player
    from api.stream.socket import Socket

log = logging.getLogger("presage.replay")

ROOM = 256 << 10  # bytes that may be buffered for a client
MAX_OWED = 2 << 20  # the same with the answers to its commands, which do not wait for room
MAX_QUEUED = 100  # changes; a client that requests more is not read until some are applied
TURN = 50  # messages before yielding to other greenlets
POLL_S = 0.005
STALL_S = 30.0  # a client that reads nothing for this long is disconnected
PING_S, DEAD_S = 25.0, 60.0
STOP_S = 0.3  # to wait for a client's close frame when the server stops


class ReplaySession(NamedTuple):
    """A client's socket, its player, and a check that its key is still valid."""

    socket: Socket
    player: Player
    allowed: Callable[[], bool]


class ReplaySessions:
    """All replay sessions of a worker."""

    def __init__(self) -> None:
        self._open: set[ReplaySession] = set()
        self._maintaining: gevent.Greenlet | None = None
        self._stopping: int | None = None

    def run(self, session: ReplaySession, on_message: Callable[[str], object]) -> None:
        """Play and handle the client's messages until either side ends the session."""
        self._open.add(session)
        if self._stopping is not None:
            self.stop(self._stopping)
        if self._maintaining is None or self._maintaining.dead:
            self._maintaining = gevent.spawn(self._maintain)
        playing = gevent.spawn(_play, session)
        try:
            while (said := session.socket.receive()) is not None:
                on_message(said)
                if session.socket.owed > MAX_OWED:
                    session.socket.close_slow()
                while session.player.queued > MAX_QUEUED and not session.socket.closed:
                    gevent.sleep(POLL_S)
        finally:
            session.player.stop()
            session.socket.close(GOING_AWAY)  # if it disconnected: release a sender that waits for it to read
            self._open.discard(session)
            playing.join()

    def stop(self, code: int = GOING_AWAY) -> None:
        """Close all sessions."""
        self._stopping = code
        for session in list(self._open):
            session.player.stop()
            session.socket.close(code, "the service is stopping", linger_s=STOP_S)

    def _maintain(self) -> None:
        """Ping clients, and disconnect dead ones and those whose key was revoked."""
        while self._open:
            gevent.sleep(PING_S)
            for session in list(self._open):
                if time.monotonic() - session.socket.received_at > DEAD_S:
                    session.socket.disconnect()
                    continue
                session.socket.push(PING)
                try:
                    if not session.allowed():
                        session.socket.close(NOT_ALLOWED, "the key is no longer valid")
                except (psycopg.Error, Problem):
                    continue  # cannot be checked now; checked again at the next ping


def sender(socket: Socket) -> Callable[[bytes], None]:
    """Return a function that sends a message and waits until there is room for another."""
    since_turn = 0

    def send(message: bytes) -> None:
        nonlocal since_turn
        if socket.closed:
            raise ConnectionLost
        socket.push(frame(message))
        since_turn += 1
        if socket.owed > ROOM:
            _await(socket, ROOM // 2)
        elif since_turn >= TURN:
            since_turn = 0
            gevent.sleep(0)

    return send


def _await(socket: Socket, most: int) -> None:
    """Wait until at most that many bytes are buffered."""
    owed, moved_at = socket.owed, time.monotonic()
    while socket.owed > most:
        gevent.sleep(POLL_S)
        if socket.closed:
            raise ConnectionLost
        if socket.owed != owed:
            owed, moved_at = socket.owed, time.monotonic()
        elif time.monotonic() - moved_at > STALL_S:
            socket.close_slow()
            raise ConnectionLost


def _play(session: ReplaySession) -> None:
    socket = session.socket
    try:
        ended = session.player.play()
        _await(socket, 0)
    except ConnectionLost:
        return
    except (psycopg.Error, Problem) as error:
        log.warning("a replay is interrupted: %s", error)
        socket.close(TRY_LATER, "stored data cannot be read right now")
    except Exception:
        log.exception("a replay failed")
        socket.close(TRY_LATER, "the replay failed")
    else:
        if ended:
            socket.close(NORMAL, "the replay is over")
        else:
            socket.close(NOT_ALLOWED, "nothing was subscribed to")
