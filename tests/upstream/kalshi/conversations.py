import contextlib
import itertools
import json

from websockets.asyncio.server import serve

from tests.upstream.kalshi.keys import KEY_ID, private_key
from tests.upstream.kalshi.samples import TICKER, frame
from upstream.kalshi.signing import Signer
from upstream.kalshi.socket.feed import KalshiFeed

PATH = "/trade-api/ws/v2"
CLOCK_WINDOW_S = 20


def signer(kind="ed25519", **options):
    return Signer(KEY_ID, private_key(kind), **options)


@contextlib.asynccontextmanager
async def exchange(conversation, process_request=None):
    """Run the exchange's socket on loopback, with `conversation` as its side of each connection."""
    async with serve(
        conversation, "127.0.0.1", 0, close_timeout=0.2, ping_interval=None, process_request=process_request
    ) as server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}{PATH}"


def refusing(status, body, **headers):
    """Return a server's answer to an upgrade that it refuses."""

    def process(connection, _):
        response = connection.respond(status, json.dumps(body) if isinstance(body, dict) else body)
        for name, value in headers.items():
            del response.headers[name]
            response.headers[name] = value
        return response

    return process


async def commands(connection):
    async for command in connection:
        yield json.loads(command)


async def acknowledge(connection, command):
    """Acknowledge each channel of a subscription, with sids by the order of the channels."""
    for sid, channel in enumerate(command["params"]["channels"], start=1):
        body = {"type": "subscribed", "id": command["id"], "msg": {"channel": channel, "sid": sid}}
        await connection.send(frame(body).decode())


def place(message, seq, sid=1):
    return frame(message | {"sid": sid, "seq": seq}).decode()


async def collect(feed, until):
    """Return a feed's events up to the first for which `until` is true."""
    events = []
    async for _, some in feed:
        events += some
        if any(map(until, some)):
            return events
    raise AssertionError("ended")


def of(kind, count=1):
    """Return a condition: the count-th event of a kind."""
    seen = itertools.count(1)
    return lambda event: isinstance(event, kind) and next(seen) == count


def books(url, *, waits=None, **options):
    """Return a feed of one market's book."""

    async def sleep(seconds):
        if waits is not None:
            waits.append(seconds)

    options = {"channels": ["orderbook_delta"], "everywhere": [], "sleep": sleep, "signer": signer()} | options
    return KalshiFeed(options.pop("signer"), url, [TICKER], **options)
