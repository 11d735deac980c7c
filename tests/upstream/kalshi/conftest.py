"""Fixtures: the REST client with a handler function in place of the exchange."""

from __future__ import annotations

import httpx
import pytest

from upstream.kalshi.rest.client import URL, Kalshi


@pytest.fixture
def api_of(client_of):
    """`api_of(answers)`: an answer is JSON, a response, or a function of the request; other paths are not found."""

    def make(answers, **options):
        refused, asked = [], []

        def exchange(request):
            assert request.headers["Accept-Language"] == "en"
            assert "KALSHI-ACCESS-KEY" not in request.headers
            asked.append(request)
            path = request.url.path.removeprefix(httpx.URL(URL).path)
            if path not in answers:
                return httpx.Response(404, json={"error": {"code": "not_found", "message": "not found"}})
            answer = answers[path]
            answer = answer(request) if callable(answer) else answer
            return answer if isinstance(answer, httpx.Response) else httpx.Response(200, json=answer)

        api = Kalshi(client_of(exchange), on_refused=refused.append, **options)
        api.refused, api.asked = refused, asked
        return api

    return make
