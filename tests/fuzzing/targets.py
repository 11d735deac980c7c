"""Parsers of bytes from outside, each as a function that raises nothing but a defect.

`TARGETS` has the exchange's and the chain nodes' answers, what clients send to the API, and what a server sends to the
Python client. A parser's own refusals, which its callers expect, are caught here; anything else that it raises is a
failure.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import io
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import falcon.uri
import msgspec

from api.data.cursor import Cursors
from api.endpoints.keys.resource import body
from api.endpoints.table import ENDPOINTS
from api.errors import Problem
from api.replay.market_channel import ReplayChannel
from api.replay.player import ReplaySpan
from api.schemas import requests
from api.server.address import Proxies
from api.server.headers import BadRequest, Headers
from api.site.passes import Passes
from api.stream import frames as client_frames
from api.stream import messages
from orchestration.equivalents import judge, questions
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.storage import copy_format, records
from orchestration.ingest.storage.rows import Token
from tests.fuzzing import seeds
from upstream.chain.contracts import POLYGON
from upstream.chain.decode import decode as decode_logs
from upstream.chain.endpoint import RpcEndpoint
from upstream.chain.wire import RawLog
from upstream.kalshi.failures import failure
from upstream.kalshi.rest.client import Kalshi
from upstream.kalshi.socket import frames as kalshi_frames
from upstream.kalshi.socket.session import KalshiSession
from upstream.polymarket.clob.client import Clob
from upstream.polymarket.data_api.client import DataApi
from upstream.polymarket.gamma.client import Gamma, nested_markets
from upstream.polymarket.market_channel.frames import parse
from upstream.sandbox.kalshi.exchange.exchange import KalshiExchange
from upstream.sandbox.kalshi.tape.playback import KalshiPlayback
from upstream.sandbox.tape.folder import UnplayableError
from upstream.transport import addresses
from upstream.transport.errors import FAULTS, SocketLost, UpstreamError
from upstream.transport.http import Client, retry_after

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

URL = "http://127.0.0.1"
MAX_PAGES = 3
_logs = msgspec.json.Decoder(list[RawLog])


class Answering(Client):
    """A client of the exchange to which every request is answered with the same bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__(attempts=1)
        self.data = data

    def _body(self, method: str, url: str, answers: Collection[int], **how: Any) -> bytes:
        return self.data


def market_frame(data: bytes) -> None:
    """Parse a frame of the market channel, apply it to two followed tokens, and encode the rows."""
    normalizer = Normalizer(clock=lambda: seeds.NOW_S)
    for outcome, token_id in enumerate(seeds.TOKENS):
        normalizer.follow(Token(token_id, seeds.MARKET, 1, outcome), 10_000)
    normalizer.apply(parse(seeds.BOOK))
    normalizer.apply(parse(data))
    batch = normalizer.cut_batch()
    due = normalizer.live_books.take(int(seeds.NOW_S * 1000) + 1)
    for encode, rows in (
        (copy_format.trades, batch.trades),
        (copy_format.changes, batch.changes),
        (records.snapshots, batch.snapshots),
        (records.quotes, batch.quotes.values()),
        (records.prices, batch.prices.values()),
        (records.books, due.books),
    ):
        encode(rows)


def gamma(data: bytes) -> None:
    """Read markets and events of the catalogue, also those inside events."""
    api = Gamma(Answering(data), URL)
    with contextlib.suppress(UpstreamError):
        for markets in api.market_pages():
            assert all(market.market_id for market in markets.items)
    with contextlib.suppress(UpstreamError):
        for events in api.event_pages():
            for event in events.items:
                nested_markets(event)
    with contextlib.suppress(UpstreamError):
        api.market("rain-tomorrow")


def clob(data: bytes) -> None:
    """Read books, prices, markets and the clock of the matching engine."""
    api = Clob(Answering(data), URL)
    for read in (
        lambda: api.books(seeds.TOKENS),
        lambda: api.book(seeds.TOKENS[0]),
        lambda: api.prices_history(seeds.TOKENS[0]),
        lambda: [market.winning_token() for market in api.markets()],
        lambda: api.market(seeds.MARKET),
    ):
        with contextlib.suppress(UpstreamError):
            read()


def data_api(data: bytes) -> None:
    """Read trades, positions, holders and activity."""
    api = DataApi(Answering(data), URL)
    for read in (
        lambda: list(api.trades()),
        lambda: list(api.trades_v1()),
        lambda: list(api.positions(seeds.WALLET)),
        lambda: list(api.closed_positions(seeds.WALLET)),
        lambda: api.holders(seeds.MARKET),
        lambda: list(api.activity(seeds.WALLET)),
    ):
        with contextlib.suppress(UpstreamError):
            read()


def equivalents(data: bytes) -> None:
    """Read a market's texts as those of either exchange, and judge them against each other."""
    market = None
    with contextlib.suppress(*FAULTS):
        market = msgspec.json.decode(data)
    if isinstance(market, dict):
        left, right = questions.from_polymarket(market), questions.from_kalshi(market, "Who will win?")
        for one, other in ((left, right), (right, left), (left, left), (right, right)):
            assert judge.judge(one, other).rules_version == judge.RULES_VERSION


def kalshi_rest(data: bytes) -> None:
    """Read every answer of the second exchange's REST API, and its errors."""
    api = Kalshi(Answering(data), URL)
    start, end = (dt.datetime.fromtimestamp(seeds.NOW_S + shift, dt.UTC) for shift in (-60, 0))
    for read in (
        lambda: [market.row(end) for market in api.markets()],
        lambda: api.market(seeds.KALSHI_MARKET),
        lambda: [(event.row(), api.nested_markets(event)) for event in api.events()],
        lambda: api.event(seeds.KALSHI_EVENT),
        lambda: [series.tag_slugs() for series in api.all_series()],
        lambda: api.series(seeds.KALSHI_EVENT),
        lambda: api.book(seeds.KALSHI_MARKET),
        lambda: [book.outcome(1) for book in api.books([seeds.KALSHI_MARKET])],
        lambda: list(api.trades()),
        lambda: list(api.trades(start=end)),
        lambda: list(api.candles(seeds.KALSHI_EVENT, seeds.KALSHI_MARKET, start, end)),
        lambda: list(api.candles_of_markets([seeds.KALSHI_MARKET], start, end)),
        lambda: (api.status().trading(2), api.status().resumes_at()),
        api.schedule,
        api.cutoff,
    ):
        with contextlib.suppress(UpstreamError):
            read()
    str(failure(data))


def kalshi_frame(data: bytes) -> None:
    """Parse a frame of the second exchange's socket, and apply it to an anchored book."""
    session = KalshiSession([seeds.KALSHI_MARKET], ["orderbook_delta"], [])
    session.begin(0.0)
    for frame in (*seeds.KALSHI_ANCHORED, data):
        with contextlib.suppress(SocketLost):
            session.apply(kalshi_frames.parse(frame), 0.0)
    for ticker, book in session.books.items():
        book.whole(ticker).outcome(1)


def kalshi_tape(data: bytes) -> None:
    """Play a recording of the second exchange after the series, event and market that it is about, and encode all."""
    exchange = KalshiExchange()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.json").write_bytes(seeds.KALSHI_LISTED)
        Path(folder, "b.json").write_bytes(data)
        with contextlib.suppress(UnplayableError):
            start_ms = int(seeds.NOW_S * 1000)
            KalshiPlayback(exchange, Path(folder), start_ms=start_ms, speed=0, progress=str).advance(0)
    for listed in (*exchange.series.values(), *exchange.events.values(), *exchange.markets.values()):
        msgspec.json.encode(listed.json())
    msgspec.json.encode([trade.rest() for trade in exchange.trades.newest_first()])
    exchange.log.after(0, exchange.log.n)


def chain_node(data: bytes) -> None:
    """Read an answer of a chain's node: the newest blocks, and logs."""
    node = RpcEndpoint(URL, 0, Answering(data))
    with contextlib.suppress(UpstreamError):
        node.tip()
    with contextlib.suppress(UpstreamError):
        node.blocks([1])
    with contextlib.suppress(UpstreamError):
        node.call_one("eth_getLogs", [])


def chain_logs(data: bytes) -> None:
    """Decode logs to fills, resolutions and moves of positions."""
    try:
        logs = _logs.decode(data)
    except FAULTS:
        return
    decode_logs(logs, POLYGON)


def webhook_url(data: bytes) -> None:
    """Parse a webhook's URL."""
    with contextlib.suppress(addresses.ForbiddenAddress):
        addresses.parse(data.decode("utf-8", "surrogateescape"))


def http_headers(data: bytes) -> None:
    """Parse a request's headers, and the client's address in them."""
    try:
        headers = Headers(io.BytesIO(data))
    except BadRequest:
        return
    dict(headers.environ())
    Proxies("127.0.0.1", "token").origin("127.0.0.1", headers.get("x-forwarded-for"), headers.get("x-presage-site"))
    retry_after(headers.get("retry-after"), seeds.NOW_S)


def websocket_frames(data: bytes) -> None:
    """Read a client's WebSocket messages until the connection ends."""
    reader = client_frames.Reader(io.BytesIO(data), lambda _: None)
    reader.pace.unlimited = True
    with contextlib.suppress(client_frames.ProtocolError, client_frames.ConnectionLost):
        while True:
            opcode, payload = reader.next()
            if opcode == client_frames.CLOSE:
                client_frames.close_code(payload)  # type: ignore[arg-type]  # a close frame's payload is bytes
                return


def stream_command(data: bytes) -> None:
    """Decode a command of a stream's client."""
    with contextlib.suppress(UnicodeDecodeError, msgspec.MsgspecError, RecursionError):
        messages.decode(data.decode())


def replay_request(data: bytes) -> None:
    """Handle a request to a replay of the exchange's own channel."""
    try:
        said = data.decode()
    except UnicodeDecodeError:
        return
    until = dt.datetime.fromtimestamp(seeds.NOW_S, dt.UTC)
    span = ReplaySpan(until - dt.timedelta(seconds=1), until, 0)
    channel = ReplayChannel(lambda *_, **__: [], span, send=lambda _: None, push=lambda _: None)
    channel.receive(said)


def query_parameters(data: bytes) -> None:
    """Parse the query string of any endpoint: the first byte says which."""
    kinds = _PARAMETERS
    given = falcon.uri.parse_query_string(data[1:].decode("latin-1"), keep_blank=True)
    with contextlib.suppress(Problem):
        requests.parse(kinds[data[0] % len(kinds)] if data else kinds[0], given)


def request_body(data: bytes) -> None:
    """Decode the body of any endpoint that has one: the first byte says which."""
    kinds = _BODIES
    with contextlib.suppress(Problem):
        body(SimpleNamespace(bounded_stream=io.BytesIO(data[1:])), kinds[data[0] % len(kinds)] if data else kinds[0])


def cursor(data: bytes) -> None:
    """Read a cursor and a page's pass, neither of them ours."""
    text = data.decode("latin-1")
    with contextlib.suppress(Problem):
        Cursors(lambda: [b"secret"]).read(text, dict)
    assert not Passes([b"secret"]).allows(text, ["rain-tomorrow"])


_PARAMETERS = sorted({endpoint.parameters for endpoint in ENDPOINTS}, key=lambda kind: kind.__name__)
_BODIES = sorted({endpoint.body for endpoint in ENDPOINTS if endpoint.body}, key=lambda kind: kind.__name__)

TARGETS: dict[str, Callable[[bytes], None]] = {
    each.__name__: each
    for each in (
        *(market_frame, gamma, clob, data_api, kalshi_rest, kalshi_frame, kalshi_tape, chain_node, chain_logs),
        *(webhook_url, http_headers, websocket_frames, stream_command, replay_request),
        *(query_parameters, request_body, cursor, equivalents),
    )
}
