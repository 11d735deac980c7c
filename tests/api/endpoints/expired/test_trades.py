"""Trades that have expired in the database are answered from the lake, in the same bytes."""

from __future__ import annotations

import datetime as dt
import json
import random
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import SecretStr

from tests.api.conftest import generous, serving
from tests.api.endpoints.expired.conftest import DAYS, FIRST, HOT_FROM, drop, say
from tests.effort import examples
from tests.object_store import object_store  # noqa: F401 (a fixture)
from tests.patience import PATIENCE_S


def history(add_market, add_trades):
    """Add trades of four days: of a busy market, a quiet one and one that ended before the last day."""
    dice = random.Random(7)
    busy, quiet, ended = add_market("busy"), add_market("quiet"), add_market("ended", status="CLOSED")
    for market, number, span in ((busy, 400, DAYS), (quiet, 6, DAYS), (ended, 60, DAYS - 1)):
        for outcome in (0, 1):
            rows = [
                {
                    "ts": FIRST + dt.timedelta(milliseconds=dice.randrange(span * 86_400_000)),
                    "price": f"0.{dice.randrange(1, 999_999):06}",
                    "size": f"{dice.randrange(1, 10**9) / 10**6:.6f}",
                    "side": dice.choice([1, -1]),
                    "tx_hash": dice.randbytes(32) if dice.random() < 0.8 else None,
                }
                for _ in range(number)
            ]
            rows += [{**row, "price": "0.5"} for row in rows[:5]]  # of the same instant
            add_trades(market, rows, outcome=outcome)
    return busy, quiet, ended


def questions(number, seed=1):
    dice = random.Random(seed)

    def instant():
        return int((FIRST + dt.timedelta(seconds=dice.randrange(-86_400, (DAYS + 1) * 86_400))).timestamp())

    for _ in range(number):
        slug = dice.choice(["busy", "quiet", "ended"])
        since, until = sorted((instant(), instant()))
        limit = dice.choice([1, 7, 100, 1000])
        range_ = {"from": since * 1000, "to": until * 1000}
        match dice.randrange(5):
            case 0:
                yield (
                    f"/v1/markets/{slug}/trades",
                    {"outcome": dice.choice(["0", "1", "all"]), "limit": limit, **range_},
                )
            case 1:
                given = {"outcome": dice.choice(["0", "1", "all"]), "limit": limit}
                yield f"/v1/markets/{slug}/trades", given | ({"to": until * 1000} if dice.random() < 0.5 else {})
            case 2:
                fill = {"fill": "previous"} if dice.random() < 0.5 else {}
                given = {"resolution": dice.choice(["1s", "1s", "1m", "1h"]), "limit": limit, **range_, **fill}
                yield f"/v1/markets/{slug}/price-history", given
            case 3:
                yield "/v1/trades/recent", {"market_id": slug, "limit": min(limit, 500)}
            case _:
                given = {"symbol": slug, "resolution": dice.choice(["1S", "1S", "60"]), "from": since, "to": until}
                yield "/v1/udf/history", given | ({"countback": limit} if dice.random() < 0.5 else {})


def answers(client, asked):
    found = [client.ask(path, **given) for path, given in asked]
    return [(answer.status_code, answer.content) for answer in found]


def test_answers_are_the_same_before_and_after_trades_expire(conn, asking, given, write, add_market, add_trades):
    history(add_market, add_trades)
    asked = list(questions(examples(100, 1000)))
    before = answers(asking(), asked)

    write()
    say(conn, given)
    in_both = answers(asking(), asked)
    assert drop(conn, given)["trades"] == DAYS - 1

    assert conn.execute("select min(ts) >= %s from trades", [HOT_FROM]).fetchone() == (True,)
    after = answers(asking(), asked)
    assert {status for status, _ in before} == {200}
    assert len({body for _, body in before}) > len(asked) / 3
    assert in_both == before
    assert after == before


def test_trades_that_come_when_their_day_is_in_the_lake_are_answered_too(
    conn, asking, given, write, add_market, add_trades
):
    market = add_market("busy")
    add_trades(market, [{"ts": FIRST, "price": "0.25"}])
    write()
    say(conn, given)
    drop(conn, given)
    add_trades(market, [{"ts": FIRST + dt.timedelta(hours=1), "price": "0.75"}])  # a gap is filled from the exchange

    found = asking().ask("/v1/markets/busy/trades").json

    assert [trade["price"] for trade in found] == [0.75, 0.25]


@pytest.mark.parametrize("fault", ["missing", "cut", "refused"])
def test_a_file_that_cannot_be_read_is_said_and_nothing_is_left_out(
    conn, asking, given, write, add_market, add_trades, fault
):
    add_trades(add_market("busy"), [{"ts": FIRST}])
    write()
    say(conn, given)
    drop(conn, given)
    [file] = Path(given.lake, "trades").rglob(f"{FIRST:%Y-%m-%d}*.parquet")
    if fault == "missing":
        file.unlink()
    elif fault == "cut":
        file.write_bytes(file.read_bytes()[:-10])
    else:
        file.unlink()
        file.mkdir()

    answer = asking().ask("/v1/markets/busy/trades", from_=0)

    assert (answer.status_code, answer.json["code"]) == (503, "overloaded")
    assert answer.headers["Retry-After"] == "60"
    assert "expired" in answer.json["detail"]


def test_an_object_store_is_read(conn, asking, database_url, write, add_market, add_trades, object_store, given):  # noqa: F811
    stored = given.model_copy(
        update={
            "lake": "s3://presage/lake",
            "lake_s3_endpoint": object_store,
            "lake_s3_key": SecretStr("key"),
            "lake_s3_secret": SecretStr("secret"),
        }
    )
    add_trades(add_market("busy"), [{"ts": FIRST}])
    before = answers(asking(stored), [("/v1/markets/busy/trades", {})])
    write(stored)
    say(conn, stored)
    assert drop(conn, stored)["trades"] == 1

    assert answers(asking(stored), [("/v1/markets/busy/trades", {})]) == before
    assert answers(asking(), [("/v1/markets/busy/trades", {})]) != before  # without the key


def test_a_server_answers_many_such_questions_at_once(conn, database_url, given, write, add_market, add_trades):
    history(add_market, add_trades)
    write()
    say(conn, given)
    drop(conn, given)
    key = generous(conn, "someone@example.com")
    asked = [f"/v1/markets/busy/trades?outcome={n % 2}&limit={200 + n // 2}" for n in range(24)]

    with serving(database_url, PRESAGE_LAKE=given.lake) as server, ThreadPoolExecutor(12) as pool:

        def ask(path):
            request = urllib.request.Request(server.url + path, headers={"X-API-Key": key})
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                return json.load(answer)

        found = list(pool.map(ask, asked))

    assert [len(trades) for trades in found] == [200 + n // 2 for n in range(24)]
    assert all(trades[0]["ts"] > trades[-1]["ts"] for trades in found)


def test_a_question_that_takes_too_many_trades_is_refused_unless_fewer_are_enough(
    conn, asking, given, write, add_market, add_trades, monkeypatch
):
    market = add_market("busy")
    add_trades(market, [{"ts": FIRST + dt.timedelta(seconds=n // 2)} for n in range(40)])
    asked = [("/v1/markets/busy/price-history", {"resolution": "1s", "limit": limit}) for limit in (4, 5)]
    before = answers(asking(), asked)
    write()
    say(conn, given)
    drop(conn, given)
    monkeypatch.setattr("api.data.expired.MAX_ROWS", 9)  # of 4.5 seconds

    fewer, more = answers(asking(), asked)
    filled = asking().ask(
        "/v1/markets/busy/price-history", resolution="1s", fill="previous", to=int(FIRST.timestamp() * 1000) + 30_000
    )

    assert fewer == before[0]
    assert more[0] == filled.status_code == 400
    assert filled.json["errors"][0]["name"] == "limit"
    assert "more than 9 rows" in filled.json["detail"]


def test_without_a_lake_nothing_is_looked_for(conn, asking, given, add_market, add_trades, monkeypatch):
    add_trades(add_market("busy"), [{"ts": FIRST}])
    monkeypatch.setattr("api.data.lake.LakeFiles.rows", lambda *_: pytest.fail("a file is read"))

    assert len(asking(given.model_copy(update={"lake": ""})).ask("/v1/markets/busy/trades").json) == 1
