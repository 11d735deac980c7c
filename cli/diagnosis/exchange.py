"""Checks of the exchange's reachability and clock."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from cli.diagnosis import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config.settings import Settings

REMEDY = "check network and proxy; the exchange blocks some countries; --simulate and --tape work without it"


def exchange(settings: Settings) -> Iterator[Finding]:
    """Check that the exchange's HTTP endpoints and market channel respond."""
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
            yield Finding("exchange", "fail", f"{name} ({url}): {error or type(error).__name__}", REMEDY)
        else:
            took = (time.monotonic() - began) * 1000
            yield Finding("exchange", "ok", f"{name}: {answer.status_code} after {took:.0f} ms")
            if name == "order books":
                yield from _clock(answer.text, took / 1000)
    yield _socket(settings.clob_socket_url)


def _clock(seconds: str, took_s: float) -> Iterator[Finding]:
    """Check our clock against the exchange's, which has whole seconds: lags are differences between the two."""
    if not seconds.strip().isdecimal():
        return
    apart = time.time() - int(seconds)
    if -1.0 - took_s <= apart <= 2.0 + took_s:
        yield Finding("exchange", "ok", "its clock and ours agree within two seconds")
    else:
        remedy = "synchronise ours with NTP; if it is right, the lag of the stage ingestion is off by that much"
        yield Finding("exchange", "warn", f"its clock and ours are {abs(apart):.0f} s apart", remedy)


def _socket(url: str) -> Finding:
    from websockets.exceptions import WebSocketException
    from websockets.sync.client import connect

    try:
        with connect(url, open_timeout=10, close_timeout=1):
            return Finding("exchange", "ok", f"market channel: {url} opens")
    except (OSError, WebSocketException) as error:
        return Finding("exchange", "fail", f"market channel ({url}): {error}", REMEDY)
