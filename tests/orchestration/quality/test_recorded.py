"""Recorded markets of the exchange raise no findings: open, closed, old and odd ones."""

from __future__ import annotations

from datetime import UTC, datetime

from orchestration.markets.catalogue import store
from orchestration.quality import passes
from tests.upstream import recordings
from upstream.polymarket.gamma.markets import GammaMarket


def test_recorded_markets_break_nothing_that_is_expected_of_markets(database_url, conn, recorded):
    texts = (text.encode() if isinstance(text, str) else text for text in recordings.gamma_markets(recorded))
    markets = [GammaMarket.read(text) for text in texts]
    store(
        conn,
        [market.row("tape") for market in markets],
        cause="recorded",
        events=[row for market in markets if (row := market.event_row()) is not None],
    )

    passed = passes.run(database_url, datetime.now(UTC))

    assert passed.rows["markets"] > 500
    assert [(result.name, result.rows_failed, result.samples[:2]) for result in passed.failed] == []
