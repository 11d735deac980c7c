import gzip
import time
import zlib
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib import metadata

import httpx
import msgspec
import pytest

from tests.upstream.servers import answer, request, serving
from upstream.transport.errors import Malformed, NotFound, RateLimited, Rejected, TooLarge, Unavailable
from upstream.transport.http import Client, retry_after

URL = "https://exchange.test/things"
numbers = msgspec.json.Decoder(list[int])
anything = msgspec.json.Decoder()


def answers(*responses):
    """Return a handler that sends these responses in turn, and records its requests."""
    left = list(responses)

    def handler(request):
        handler.asked.append(request)
        response = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(response, Exception):
            raise response
        return response

    handler.asked = []
    return handler


def test_an_answer_is_decoded_into_the_type_asked_for(client_of):
    handler = answers(httpx.Response(200, json=[1, 2]))

    assert client_of(handler).get(URL, numbers) == [1, 2]
    assert handler.asked[0].headers["user-agent"] == f"presage/{metadata.version('presage')}"
    assert handler.asked[0].headers["accept-encoding"] == "gzip"


def test_parameters_are_written_as_the_exchange_reads_them(client_of):
    handler = answers(httpx.Response(200, json=[]))

    client_of(handler).get(
        URL,
        numbers,
        {"id": ["1", 2], "closed": False, "none": None, "since": datetime(2026, 1, 2, 3, tzinfo=UTC), "n": 1},
    )

    assert str(handler.asked[0].url.query, "ascii") == "id=1&id=2&closed=false&since=2026-01-02T03%3A00%3A00Z&n=1"


def test_what_passes_is_tried_again_with_doubling_waits(client_of, clock):
    handler = answers(
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut off"),
        httpx.Response(503, text="<html>"),
        httpx.Response(200, json=[7]),
    )
    client = client_of(handler)

    assert client.get(URL, numbers) == [7]
    assert clock.slept == [0.5, 1.0, 2.0, 4.0]
    assert (client.counts.requests, client.counts.retries, client.counts.failures) == (5, 4, 0)
    assert client.counts.waited_s == 7.5


def test_what_does_not_pass_is_an_error_in_the_end(client_of):
    client = client_of(answers(httpx.Response(502)))

    with pytest.raises(Unavailable, match="502"):
        client.get(URL, numbers)
    assert (client.counts.requests, client.counts.failures) == (5, 1)


def test_waits_are_drawn_anew_below_their_ceiling(client_of, clock):
    drawn = []
    client = client_of(answers(httpx.Response(500)), uniform=lambda low, high: drawn.append((low, high)) or high / 2)

    with pytest.raises(Unavailable):
        client.get(URL, numbers)
    assert drawn == [(0, 0.5), (0, 1.0), (0, 2.0), (0, 4.0)]
    assert clock.slept == [0.25, 0.5, 1.0, 2.0]


def test_an_error_carries_the_beginning_of_its_body(client_of):
    for status, kind in ((400, Rejected), (404, NotFound), (429, RateLimited), (503, Unavailable)):
        with pytest.raises(kind) as caught:
            client_of(lambda _, status=status: httpx.Response(status, content=b"x" * 5000), attempts=1).get(
                URL, anything
            )

        assert caught.value.body == b"x" * 4096


def test_a_status_may_answer_as_well_as_200(client_of):
    client = client_of(lambda _: httpx.Response(503, json={"active": False}), attempts=1)

    assert client.get(URL, anything, answers=(503,)) == {"active": False}
    with pytest.raises(Unavailable):
        client.get(URL, anything, answers=(504,))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 422])
def test_a_fault_of_the_request_is_never_sent_twice(client_of, status):
    handler = answers(httpx.Response(status, json={"error": "Invalid token id"}))

    with pytest.raises(NotFound if status == 404 else Rejected, match=f"{status} .*Invalid token id"):
        client_of(handler).get(URL, numbers)
    assert len(handler.asked) == 1


def test_redirects_are_not_followed(client_of):
    handler = answers(httpx.Response(302, headers={"location": "http://169.254.169.254/"}))

    with pytest.raises(Rejected) as raised:
        client_of(handler).get(URL, numbers)
    assert raised.value.status == 302
    assert len(handler.asked) == 1


def test_retry_after_is_obeyed_in_seconds_and_as_a_date(client_of, clock):
    soon = datetime.fromtimestamp(clock.now + 3 + 7, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")
    handler = answers(
        httpx.Response(429, headers={"retry-after": "3"}),
        httpx.Response(503, headers={"retry-after": soon}),
        httpx.Response(429, headers={"retry-after": "86400"}),
        httpx.Response(200, json=[]),
    )

    client_of(handler).get(URL, numbers)

    assert clock.slept == [3.0, 7.0, 60.0]


def test_a_limit_that_stays_is_an_error_that_says_how_long(client_of):
    with pytest.raises(RateLimited) as raised:
        client_of(answers(httpx.Response(429, headers={"retry-after": "2"}))).get(URL, numbers)
    assert raised.value.retry_after_s == 2


@pytest.mark.parametrize("text", ["", "soon", "1.5.2", "Thu, 99 Foo 2026", None])
def test_a_retry_after_that_says_nothing_is_passed_over(text):
    assert retry_after(text, 0.0) is None


@pytest.mark.parametrize(
    "body",
    [b"<html>Just a moment...</html>", b" <!doctype html>", b"", b"[1, 2", b'{"a": 1}', b"\xff\xfe", b"[" * 100_000],
)
def test_a_body_that_is_not_what_it_should_be_is_asked_for_again_and_then_malformed(client_of, body):
    passing = client_of(answers(httpx.Response(200, content=body), httpx.Response(200, json=[1])))
    lasting = client_of(answers(httpx.Response(200, content=body)))

    assert passing.get(URL, numbers) == [1]
    with pytest.raises(Malformed):
        lasting.get(URL, numbers)


def test_requests_wait_for_their_place_within_the_limits(client_of, clock):
    client = client_of(answers(httpx.Response(200, json=[])))
    client.limits.declare("https://exchange.test", {"": 1000, "/things": 10})

    for _ in range(12):
        client.get(URL, numbers)

    assert clock.slept == pytest.approx([1.25] * 10)  # two at once, then eight per ten seconds


# --- Real sockets ---


@pytest.fixture
def client():
    with Client(attempts=1, max_body=100_000) as client:
        yield client


@pytest.fixture
def hasty():
    """`hasty(read_s=0.3)`: a client that waits for so long."""
    with ExitStack() as clients:
        yield lambda **limits: clients.enter_context(Client(attempts=1, **limits))


def test_connections_are_kept_and_reused(client):
    def two_requests(connection):
        for number in (1, 2):
            request(connection)
            connection.sendall(answer(b"[%d]" % number))

    with serving(two_requests) as url:
        assert client.get(url, numbers) == [1]
        assert client.get(url, numbers) == [2]


def test_gzip_is_unpacked(client):
    def zipped(connection):
        request(connection)
        connection.sendall(answer(gzip.compress(b"[1, 2, 3]"), "Content-Encoding: gzip"))

    with serving(zipped) as url:
        assert client.get(url, numbers) == [1, 2, 3]


def test_a_server_that_hangs_is_given_up(hasty):
    def hang(connection):
        request(connection)
        connection.recv(1)  # until the client disconnects

    with serving(hang) as url, pytest.raises(Unavailable, match="ReadTimeout"):
        hasty(read_s=0.3).get(url, numbers)


def test_a_server_that_drips_is_given_up_in_all(hasty):
    def drip(connection):
        request(connection)
        connection.sendall(answer(b"", length=1000))
        for _ in range(1000):
            connection.sendall(b" ")
            time.sleep(0.05)

    with serving(drip) as url, pytest.raises(Unavailable, match="not whole within"):
        hasty(total_s=0.5).get(url, numbers)


def test_a_body_beyond_the_cap_is_not_read_to_its_end(client):
    def pour(connection):
        request(connection)
        connection.sendall(answer(b"", length=1 << 40))
        while True:
            connection.sendall(b" " * 65536)

    with serving(pour) as url, pytest.raises(TooLarge):
        client.get(url, numbers)


def test_a_small_gzip_that_holds_gigabytes_is_stopped_at_the_cap(client):
    packer = zlib.compressobj(9, wbits=31)
    bomb = b"".join(packer.compress(b" " * (1 << 20)) for _ in range(256)) + packer.flush()

    def explode(connection):
        request(connection)
        connection.sendall(answer(bomb, "Content-Encoding: gzip"))

    with serving(explode) as url, pytest.raises(TooLarge):
        client.get(url, numbers)


@pytest.mark.parametrize(
    ("sent", "error"),
    [
        (answer(b"[1, 2", length=100), Unavailable),
        (answer(gzip.compress(b"[1, 2]", mtime=0)[:-5], "Content-Encoding: gzip"), Malformed),
        (answer(b"not gzip", "Content-Encoding: gzip"), Malformed),
        (answer(b"[]", "Content-Encoding: br"), Malformed),
        (b"nonsense\r\n\r\n", Unavailable),
        (b"", Unavailable),
    ],
)
def test_a_broken_answer_is_an_error_and_nothing_else(client, sent, error):
    def broken(connection):
        request(connection)
        connection.sendall(sent)

    with serving(broken) as url, pytest.raises(error):
        client.get(url, numbers)


def test_nobody_listening_is_unavailable(client):
    with serving(request) as url:
        pass

    with pytest.raises(Unavailable, match="ConnectError"):
        client.get(url, numbers)


def test_a_connection_that_breaks_is_tried_again():
    def gone(connection):
        request(connection)

    def there(connection):
        request(connection)
        connection.sendall(answer(b"[5]"))

    with serving(gone, there) as url, Client(initial_backoff_s=0.01) as client:
        assert client.get(url, numbers) == [5]
        assert client.counts.retries == 1


def test_a_url_that_is_none_is_rejected_at_once(client_of):
    with pytest.raises(Rejected):
        client_of(answers(httpx.Response(200))).get("http://exchange.test:port/", numbers)
