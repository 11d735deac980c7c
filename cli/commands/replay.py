"""`presage replay`: serve recorded data as the exchange's market channel on a local port."""

from __future__ import annotations

import contextlib
import signal
import threading
from datetime import UTC, datetime, timedelta
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import typer
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from api.replay.market_channel import ReplayChannel
from api.replay.player import ReplaySpan
from sql.database import connect

if TYPE_CHECKING:
    from collections.abc import Callable

RELATIVE = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
NORMAL, NOT_ALLOWED = 1000, 1008
ENDING = {signal.SIGINT, signal.SIGTERM}


def moment(text: str, now: datetime) -> datetime:
    """Parse a time: RFC 3339, Unix milliseconds, or an age such as `90m` or `2d`."""
    try:
        if text[-1:] in RELATIVE:
            return now - timedelta(**{RELATIVE[text[-1]]: float(text[:-1])})
        if text.isdecimal():
            return datetime.fromtimestamp(int(text) / 1000, UTC)
        found = datetime.fromisoformat(text)
        return found if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        raise typer.BadParameter(f"not a valid time: {text} (2026-11-20T12:00Z, 1795176000000, 90m, 2d)") from None


def span(since: str, until: str | None, speed: float) -> ReplaySpan:
    """Return the validated time span and speed to replay."""
    now = datetime.now(UTC)
    found = ReplaySpan(moment(since, now), now if until is None else min(now, moment(until, now)), speed)
    if found.since >= found.until:
        raise typer.BadParameter("--from must be before --to and before now")
    return found


def run(url: str, played: ReplaySpan, port: int) -> None:
    """Serve until SIGINT or SIGTERM."""
    # Nothing is raised: an exception between two steps of the start would leave the server's end waiting for it. A mask
    # would not do: it is the main thread's, and a library's thread without it may get the signal.
    ended: SimpleQueue[int] = SimpleQueue()  # its `put` may interrupt its `get`
    before = {number: signal.signal(number, lambda number, _: ended.put(number)) for number in ENDING}
    with server(url, played, port) as serving:
        threading.Thread(target=serving.serve_forever, name="replay").start()
        address = f"ws://127.0.0.1:{serving.socket.getsockname()[1]}/ws/market"
        typer.echo(f"{played.since:%Y-%m-%d %H:%M:%S} to {played.until:%Y-%m-%d %H:%M:%S} UTC: {address}")
        ended.get()
        for number, handler in before.items():  # a second one ends it without waiting for its clients
            signal.signal(number, handler)


def server(url: str, played: ReplaySpan, port: int) -> Server:
    """Return the listening server; each client gets the whole replay from its start."""
    return serve(lambda client: _play(url, played, client), "127.0.0.1", port, compression=None, max_size=1 << 20)


def _play(url: str, played: ReplaySpan, client: ServerConnection) -> None:
    with connect(url, autocommit=True, name="presage replay") as conn:
        one_at_a_time = threading.Lock()

        def rows(query: Callable[..., Any], **asked: Any) -> list[tuple[Any, ...]]:
            with one_at_a_time:
                return list(query(conn, **asked))

        def send(message: bytes) -> None:
            client.send(message.decode(), text=True)

        channel = ReplayChannel(rows, played, send=send, push=send)
        listening = threading.Thread(target=_listen, args=(client, channel), daemon=True)
        listening.start()
        with contextlib.suppress(ConnectionClosed):
            if channel.player.play():
                client.close(NORMAL, "the replay is over")
            else:
                client.close(NOT_ALLOWED, "nothing was subscribed to")


def _listen(client: ServerConnection, channel: ReplayChannel) -> None:
    with contextlib.suppress(ConnectionClosed):
        for said in client:
            channel.receive(said if isinstance(said, str) else said.decode(errors="replace"))
    channel.player.stop()
