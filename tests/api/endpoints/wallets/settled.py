"""Fixtures: a market with settled trades on a simulated chain, and its wallets."""

from __future__ import annotations

import datetime as dt

import pytest

from tests.orchestration.wallets.chain import Chain, address

NOW = dt.datetime.now(dt.UTC)
ANN, BOB, CID = ("0x" + address(name).hex() for name in ("ann", "bob", "cid"))


@pytest.fixture
def market(add_market):
    return add_market("rain", token_ids=["71", "72"], outcome_prices=[550_000, 450_000])


@pytest.fixture
def chain(conn, market):
    chain = Chain(conn, start=NOW - dt.timedelta(hours=1))
    conn.execute("insert into chain_ranges (from_block, to_block, logs) values (1, 200, 0)")
    chain.head(100)
    return chain


def match(**columns):
    return {"token": "71", "price": "0.4", "size": 100, "maker": "ann", "taker": "bob", **columns}


def send(client, method, path, **options):
    headers = {"X-API-Key": options.pop("key", client.key)}
    return client.simulate_request(method, path, headers=headers, **options)


def watch(client, wallet, **options):
    return send(client, "POST", "/v1/wallets/watch", json={"address": wallet}, **options)
