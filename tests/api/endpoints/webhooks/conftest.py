"""Fixtures of webhooks over the API: `send` calls an endpoint, `made` is a verified webhook."""

from __future__ import annotations

import pytest

from tests.api.endpoints.webhooks.rows import URL, verify


@pytest.fixture
def send(client):
    def request(method, path="", *, key=None, **body):
        headers = {"X-API-Key": key or client.key}
        more = {"json": body} if body else {}
        return client.simulate_request(method, f"/v1/webhooks{path}", headers=headers, **more)

    return request


@pytest.fixture
def made(send, conn):
    """A webhook as it was answered, whose receiver has repeated the challenge since."""
    answered = send("POST", url=URL, events=["trade", "signal"], min_usd=1000).json
    verify(conn)
    return answered
