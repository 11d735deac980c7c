"""The exchange, as far as it can be reached from here."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cli.diagnosis import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config.settings import Settings

WAY_OUT = "check network and proxy; the exchange refuses some countries; --simulate and --tape need none of it"


def exchange(settings: Settings) -> Iterator[Finding]:
    """Whether the exchange answers from here."""
    import httpx

    for name, url in (
        ("catalogue", f"{settings.gamma_url}/markets?limit=1"),
        ("order books", f"{settings.clob_url}/time"),
        ("trades", f"{settings.data_api_url}/trades?limit=1"),
    ):
        began = time.monotonic()
        try:
            answer = httpx.get(url, timeout=10, follow_redirects=True).raise_for_status()
        except httpx.HTTPError as error:
            yield Finding("exchange", "fail", f"{name} ({url}): {error or type(error).__name__}", WAY_OUT)
        else:
            took = (time.monotonic() - began) * 1000
            yield Finding("exchange", "ok", f"{name}: {answer.status_code} after {took:.0f} ms")
            if name == "order books":
                yield from _clock(answer.text, took / 1000)
    yield _socket(settings.clob_socket_url)


def _clock(told: str, took_s: float) -> Iterator[Finding]:
    """How far the exchange's clock is from ours, which it tells in whole seconds: lags are between the two."""
    if not told.strip().isdecimal():
        return
    apart = time.time() - int(told)
    if -1.0 - took_s <= apart <= 2.0 + took_s:
        yield Finding("exchange", "ok", "its clock and ours agree within two seconds")
    else:
        remedy = "set ours by NTP; if it is right, lags of the stage ingestion are wrong by that much"
        yield Finding("exchange", "warn", f"its clock and ours are {abs(apart):.0f} s apart", remedy)


def _socket(url: str) -> Finding:
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect

    try:
        with connect(url, open_timeout=10, close_timeout=1):
            return Finding("exchange", "ok", f"market channel: {url} opens")
    except (OSError, WebSocketException) as error:
        return Finding("exchange", "fail", f"market channel ({url}): {error}", WAY_OUT)
