"""Limits of busy events: filters that are required, and the budget of an account."""

from __future__ import annotations

import pytest

from api.endpoints.webhooks import records
from tests.api.endpoints.webhooks.rows import URL, promised

ANN = "0x" + "a1" * 20


@pytest.mark.parametrize(
    ("wanted", "enough"),
    [
        ({"events": ["trade"]}, False),
        ({"events": ["market", "trade"], "wallets": [ANN]}, False),
        ({"events": ["onchain_trade"]}, False),
        ({"events": ["trade"], "min_usd": 99.99}, False),
        ({"events": ["trade"], "min_usd": 100}, True),
        ({"events": ["trade"], "markets": ["rain"]}, True),
        ({"events": ["onchain_trade"], "wallets": [ANN]}, True),
        ({"events": ["wallet_activity", "signal", "market"]}, True),
    ],
    ids=str,
)
def test_all_trades_need_a_filter_below_the_top_tier(send, conn, add_market, wanted, enough):
    add_market("rain")

    answer = send("POST", url=URL, **wanted)

    assert answer.status_code == (201 if enough else 400), answer.json
    if not enough:
        (fault,) = answer.json["errors"]
        assert fault["name"] == "markets"
        assert "`min_usd` of at least 100" in fault["detail"]
    conn.execute("update api_keys set tier = 'enterprise'")
    assert send("POST", url=URL, **wanted).status_code == 201


def test_a_filter_that_is_needed_cannot_be_taken_away_and_webhooks_from_before_can_be_moved(send, conn, made):
    assert send("PATCH", f"/{made['id']}", min_usd=None).status_code == 400
    assert send("PATCH", f"/{made['id']}", events=["onchain_trade"], min_usd=1).status_code == 400
    assert send("PATCH", f"/{made['id']}", events=["market"], min_usd=None).status_code == 200
    conn.execute("update webhooks set events = '{trade}'")

    assert send("PATCH", f"/{made['id']}", url=f"{URL}/moved").status_code == 200


def test_a_webhook_whose_account_is_over_its_budget_says_so(send, conn, made):
    until = conn.execute(
        """update webhooks set over_budget_until = now() + interval '1 hour', due_at = now()
        returning extract(epoch from over_budget_until)::bigint"""
    ).fetchone()[0]

    shown = promised(send("GET", f"/{made['id']}"), records.Webhook)

    assert shown["state"] == "over_budget"
    assert abs(shown["next_at"] - until) <= 1
    conn.execute("update webhooks set over_budget_until = now() - interval '1 second'")
    assert send("GET", f"/{made['id']}").json["state"] == "active"
