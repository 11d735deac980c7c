"""A wallet's history as a walk: by cursor, within a range, of one market."""

from __future__ import annotations

import datetime as dt

import pytest

from orchestration.wallets import positions
from tests.api.endpoints.wallets.settled import ANN, BOB, CID, NOW, match, watch
from tests.orchestration.wallets.chain import Chain

pytestmark = pytest.mark.usefixtures("present")
TRADES = ["onchain", "activity"]


def ask(client, path, **asked):
    return client.ask(f"/v1/wallets/{ANN}/{path}", **asked)


def walk(client, path, meanwhile=lambda: None, **asked):
    """Every page of a list."""
    pages = [ask(client, path, **asked).json]
    while pages[-1]["has_more"]:
        meanwhile()
        pages.append(ask(client, path, cursor=pages[-1]["next_cursor"], **asked).json)
    assert [page["count"] for page in pages] == [len(page["data"]) for page in pages]
    assert pages[-1]["next_cursor"] == ""
    return [row for page in pages for row in page["data"]]


def place(row):
    return row["block_number"], row["log_index"], row["role"] == "maker"


@pytest.mark.parametrize("path", TRADES)
def test_trades_are_walked_to_the_end_each_once_while_new_ones_come(client, chain, path):
    watch(client, ANN)
    for block in range(101, 106):
        chain.block(block, *[match(token=str(71 + n % 2), size=n + 1) for n in range(4)])
    chain.block(106, match(maker="ann", taker="ann", alone=True))  # one fill, on both sides
    blocks = iter(range(107, 200))

    rows = walk(client, path, lambda: chain.block(next(blocks), match()), limit=3)

    places = [place(row) for row in rows]
    assert len(places) == 22
    assert places == sorted(set(places), reverse=True)


@pytest.mark.parametrize("path", TRADES)
def test_a_range_and_a_market_are_all_that_is_shown(client, chain, add_market, path):
    add_market("snow", token_ids=["81", "82"])
    watch(client, ANN)
    for block in (101, 102, 103, 104):
        chain.block(block, match(), match(token="82"), match(token="99"))
    since, until = chain.ts(102).isoformat(), int(chain.ts(104).timestamp() * 1000)

    def shown(**asked):
        return {(row["block_number"], row["token_id"]) for row in walk(client, path, limit=2, **asked)}

    assert {block for block, _ in shown(**{"from": since})} == {102, 103, 104}
    assert {block for block, _ in shown(to=until)} == {101, 102, 103}
    assert shown(market_id="snow") == {(block, "82") for block in (101, 102, 103, 104)}
    assert shown(market_id="snow", to=until, **{"from": since}) == {(102, "82"), (103, "82")}


@pytest.mark.parametrize("late", [False, True])
def test_a_market_s_trades_are_found_before_and_after_positions_have_come_to_them(
    client, conn, chain, add_market, late
):
    add_market("snow", token_ids=["81", "82"])
    add_market("hail", token_ids=["91", "92"])
    for block in range(1, 40):
        chain.block(block, match(), *([match(token="81")] if block in {11, 12} else []))
    positions.bring_up_to_date(conn, NOW)

    def blocks(market):
        return [row["block_number"] for row in walk(client, "onchain", limit=1, market_id=market)]

    assert (blocks("snow"), blocks("hail")) == ([12, 11], [])
    if late:  # below what positions have come to, and not in them yet
        conn.execute("update positions_head set claimed = 60, done = 60")
        chain.block(45, match(token="81"), live=False)
    else:
        chain.block(101, match(token="81"))
    assert blocks("snow") == [45 if late else 101, 12, 11]


def test_a_range_that_begins_before_what_is_shown_is_cut_and_says_so(client, conn, market):
    chain = Chain(conn, start=NOW - dt.timedelta(days=14, minutes=5))
    chain.block(1, match())
    chain.block(60, match())

    found = ask(client, "onchain", **{"from": 0}).json
    later = int(NOW.timestamp() * 1000) - 5000

    assert [row["block_number"] for row in found["data"]] == [60]
    assert found["since"] > (NOW - dt.timedelta(days=14, minutes=1)).timestamp() * 1000
    assert ask(client, "onchain", **{"from": later}).json["since"] == later


def test_the_outcomes_that_a_wallet_traded_are_walked(client, chain, market, add_market):
    add_market("snow", token_ids=["81", "82"])
    for block, token in enumerate(["71", "72", "81", "82", "91", "92", "93"], start=10):
        chain.block(block, match(token=token), match(token=str(int(token) + 100)))

    rows = walk(client, "markets", limit=3)

    assert len({row["token_id"] for row in rows}) == len(rows) == 14
    assert [row["last_trade"] for row in rows] == sorted((row["last_trade"] for row in rows), reverse=True)
    assert [row["token_id"] for row in walk(client, "markets", limit=1, market_id="snow")] == ["82", "81"]
    since = {"from": chain.ts(15).isoformat()}
    assert [row["token_id"] for row in walk(client, "markets", to=chain.ts(16).isoformat(), **since)] == ["92", "192"]


@pytest.mark.parametrize("path", [*TRADES, "markets"])
def test_a_cursor_is_of_use_for_its_own_list_only(client, chain, path):
    for wallet in (ANN, BOB):
        watch(client, wallet)
    for block in (101, 102, 103):
        chain.block(block, match(), match(token="72"))
    cursor = ask(client, path, limit=1).json["next_cursor"]

    refused = [
        client.ask(f"/v1/wallets/{BOB}/{path}", cursor=cursor),
        *[client.ask(f"/v1/wallets/{ANN}/{other}", cursor=cursor) for other in {*TRADES, "markets"} - {path}],
        ask(client, path, cursor=cursor, to=0),
        ask(client, path, cursor=cursor, market_id="rain"),
        ask(client, path, cursor=cursor[:-2]),
    ]

    assert [(answer.status_code, answer.json["code"]) for answer in refused] == [(400, "invalid_cursor")] * 6
    assert ask(client, path, cursor=cursor, limit=2).json["count"] == (1 if path == "markets" else 2)


def test_a_market_that_there_is_not_is_said_to_be_missing(client):
    assert ask(client, "onchain", market_id="nothing").json["code"] == "not_found"


def test_who_never_watched_is_shown_nothing_of_what_others_had_kept(client, chain):
    watch(client, ANN)
    chain.block(101, match(maker="cid"))

    assert client.ask(f"/v1/wallets/{CID}/activity").json == {
        "address": CID, "watching": False, "data": [], "count": 0, "next_cursor": "", "has_more": False,
    }  # fmt: skip
