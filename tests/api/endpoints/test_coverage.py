"""Coverage of stored data, and its gaps."""

from __future__ import annotations

import datetime as dt

import msgspec
import pytest

from api.endpoints.coverage.records import Coverage, MarketCoverage
from api.schemas.requests import EARLIEST, LATEST
from orchestration.feeds.shards import shard_of
from sql.queries import coverage as queries
from tests.factories import insert

NOW = dt.datetime.now(dt.UTC).replace(microsecond=0)
HOUR, DAY = dt.timedelta(hours=1), dt.timedelta(days=1)
SINCE = NOW - 10 * DAY


def ms(instant):
    return round(instant.timestamp() * 1000)


@pytest.fixture
def recorded(conn, add_market, add_trades):
    """A feed that has recorded for ten days, up to an hour ago, and a market that was listed five days ago."""
    insert(
        conn,
        "feed_stats",
        {"ts": SINCE, "feed": "polymarket", "run_id": "r", "messages": 1, "rows": 1, "lag_counts": []},
    )
    conn.execute(
        "update stage_clocks set last_data_at = %s, detail = jsonb_build_object('written_ms', %s::bigint)"
        " where stage = 'ingestion'",
        [NOW - 2 * HOUR, ms(NOW - HOUR)],
    )
    market = add_market("rain", created_at=NOW - 5 * DAY)
    key = {"market_key": market["market_key"], "outcome": 0}
    add_trades(market, [{"ts": SINCE}, {"ts": NOW - 4 * DAY}, {"ts": NOW - 3 * HOUR}])
    insert(conn, "book_events", {**key, "ts": SINCE, "event_id": 1, "seq": 1})
    insert(conn, "quotes", {**key, "ts": NOW - 4 * DAY})
    return market


@pytest.fixture
def add_gap(conn):
    def add(kind="books", *, ago=DAY, lasted=HOUR, cause="closed", **columns):
        row = {
            "kind": kind,
            "from_ts": NOW - ago,
            "to_ts": None if lasted is None else NOW - ago + lasted,
            "cause": cause,
        }
        return insert(conn, "coverage_gaps", {**row, **columns})

    return add


def of_kind(answer, kind):
    return next(each for each in answer["kinds"] if each["kind"] == kind)


def ids(answer):
    return [gap["id"] for gap in answer["data"]]


def test_a_kind_says_from_when_to_when_it_is_held_and_how_fresh_it_is(client, recorded):
    answer = client.ask("/v1/coverage").json

    assert [each["kind"] for each in answer["kinds"]] == ["trades", "books", "settlements"]
    assert of_kind(answer, "trades") == {
        "kind": "trades",
        "status": "stale",
        "from_ts": ms(SINCE),
        "to_ts": ms(NOW - HOUR),
        "spans": [{"from_ts": ms(SINCE), "to_ts": ms(NOW - HOUR)}],
        "missing_s": 0,
        "gaps": {"open": 0, "fillable": 0, "lost": 0, "filled": 0},
        "reconciled_to": None,
    }
    assert of_kind(answer, "settlements")["status"] == "off"
    assert of_kind(answer, "settlements")["spans"] == []
    assert msgspec.convert(answer, Coverage, strict=False).count == 0


def test_of_an_empty_database_nothing_is_held(client):
    answer = client.ask("/v1/coverage").json

    assert {(each["from_ts"], each["to_ts"], len(each["spans"])) for each in answer["kinds"]} == {(None, None, 0)}
    assert (answer["data"], answer["days"], answer["next_cursor"], answer["has_more"]) == ([], [], "", False)


def test_what_retention_has_dropped_is_no_longer_held(client, conn, recorded):
    conn.execute("delete from book_events")
    conn.execute("select drop_chunks('book_events', older_than => %s::timestamptz)", [NOW + 2 * DAY])
    insert(
        conn,
        "book_events",
        {"market_key": recorded["market_key"], "outcome": 0, "ts": NOW - 3 * DAY, "event_id": 2, "seq": 2},
    )

    books = of_kind(client.ask("/v1/coverage").json, "books")

    midnight = (NOW - 3 * DAY).replace(hour=0, minute=0, second=0)
    assert (books["from_ts"], books["to_ts"]) == (ms(midnight), ms(NOW - HOUR))


def test_days_that_were_filled_in_from_before_are_spans_of_their_own(client, conn, add_trades, recorded):
    early = (SINCE - 30 * DAY).date()
    add_trades(recorded, [{"ts": SINCE - 30 * DAY}])
    for nth in range(2):
        row = {"day": early + nth * DAY, "kind": "trades", "listed": 3, "held": 3, "added": 3}
        insert(conn, "coverage_days", {**row, "unlisted": 0, "unknown": 0, "agrees": True})

    trades = of_kind(client.ask("/v1/coverage").json, "trades")

    first = dt.datetime(early.year, early.month, early.day, tzinfo=dt.UTC)
    assert trades["spans"] == [
        {"from_ts": ms(SINCE), "to_ts": ms(NOW - HOUR)},
        {"from_ts": ms(first), "to_ts": ms(first + 2 * DAY)},
    ]
    assert (trades["from_ts"], trades["reconciled_to"]) == (ms(first), str(early + DAY))


def test_a_gap_says_why_it_is_there_and_what_became_of_it(client, add_gap, recorded):
    lost = add_gap("books", ago=DAY, cause="no feed running")
    fillable = add_gap("trades", ago=2 * DAY, detail={"attempts": 3, "fault": "Unavailable: 503"})
    filled = add_gap("trades", ago=3 * DAY, filled_at=NOW, filled_by="data_api", detail={"trades": 7})
    going_on = add_gap("books", ago=4 * DAY, lasted=None, market_key=recorded["market_key"])

    answer = client.ask("/v1/coverage").json

    assert ids(answer) == [str(each["gap_id"]) for each in (lost, fillable, filled, going_on)]
    assert answer["data"][0] == {
        "id": str(lost["gap_id"]),
        "kind": "books",
        "market_id": None,
        "from_ts": ms(NOW - DAY),
        "to_ts": ms(NOW - DAY + HOUR),
        "cause": "no feed running",
        "status": "lost",
        "filled_at": None,
        "filled_by": None,
        "added": 0,
        "fault": None,
        "from_block": None,
        "to_block": None,
        "shard": None,
    }
    assert [gap["status"] for gap in answer["data"]] == ["lost", "fillable", "filled", "open"]
    assert answer["data"][1]["fault"] == "Unavailable: 503"
    assert (answer["data"][2]["filled_by"], answer["data"][2]["added"]) == ("data_api", 7)
    assert answer["data"][2]["filled_at"] == ms(NOW) // 1000
    assert answer["data"][3]["market_id"] == recorded["market_id"]
    assert of_kind(answer, "trades")["gaps"] == {"open": 0, "fillable": 1, "lost": 0, "filled": 1}
    assert of_kind(answer, "books")["gaps"] == {"open": 1, "fillable": 0, "lost": 1, "filled": 0}
    assert msgspec.convert(answer, Coverage, strict=False).count == 4


def test_a_gap_of_a_shard_is_listed_with_it_and_for_its_markets_only(client, add_gap, recorded):
    number = shard_of(recorded["market_id"], 2)
    mine, other = (add_gap("books", shard=shard, shards=2) for shard in (number, 3 - number))

    assert {gap["id"]: (gap["market_id"], gap["shard"]) for gap in client.ask("/v1/coverage").json["data"]} == {
        str(mine["gap_id"]): (None, f"{number}/2"),
        str(other["gap_id"]): (None, f"{3 - number}/2"),
    }
    of_market = client.ask(f"/v1/markets/{recorded['market_id']}/coverage").json["data"]
    assert [(gap["id"], gap["shard"]) for gap in of_market] == [(str(mine["gap_id"]), f"{number}/2")]


def test_what_is_missing_is_added_up_once_and_only_where_something_is_held(client, add_gap, recorded):
    add_gap("books", ago=DAY, lasted=2 * HOUR)
    add_gap("books", ago=DAY - HOUR, lasted=2 * HOUR, market_key=recorded["market_key"])
    add_gap("books", ago=20 * DAY, lasted=10 * DAY + HOUR)
    add_gap("books", ago=2 * DAY, lasted=HOUR, filled_at=NOW, filled_by="run 1")

    assert of_kind(client.ask("/v1/coverage").json, "books")["missing_s"] == 4 * 3600


def test_stretches_of_the_chain_that_are_not_indexed_are_gaps(client, conn):
    for number, ago in ((100, 9), (199, 8), (300, 5), (400, 1)):
        row = {"number": number, "hash": bytes([number % 256]) * 32, "ts": NOW - ago * HOUR, "logs": 1}
        insert(conn, "chain_blocks", row)
    for first, last in ((100, 199), (300, 400)):
        insert(conn, "chain_ranges", {"from_block": first, "to_block": last, "logs": 2})
    insert(
        conn,
        "chain_heads",
        {"feed": "settlement", "head": 410, "finalized": 400, "indexed": 400, "detail": {"start": 100}},
    )

    answer = client.ask("/v1/coverage").json

    (gap,) = answer["data"]
    assert (gap["id"], gap["kind"], gap["status"]) == ("blocks 200-299", "settlements", "fillable")
    assert (gap["from_block"], gap["to_block"]) == (200, 299)
    assert (gap["from_ts"], gap["to_ts"]) == (ms(NOW - 8 * HOUR), ms(NOW - 5 * HOUR))
    assert of_kind(answer, "settlements")["spans"] == [
        {"from_ts": ms(NOW - 5 * HOUR), "to_ts": ms(NOW - HOUR)},
        {"from_ts": ms(NOW - 9 * HOUR), "to_ts": ms(NOW - 8 * HOUR)},
    ]
    conn.execute('update chain_heads set detail = \'{"start": 100, "floor": 300}\'')
    assert client.ask("/v1/coverage", kind="settlements").json["data"] == []


def test_gaps_are_chosen_by_kind_state_and_time(client, add_gap, recorded):
    old = add_gap("books", ago=3 * DAY)
    new = add_gap("trades", ago=DAY)
    going_on = add_gap("trades", ago=2 * DAY, lasted=None)

    def asked(**filters):
        return ids(client.ask("/v1/coverage", **filters).json)

    assert asked(kind="books") == [str(old["gap_id"])]
    assert asked(status="open") == [str(going_on["gap_id"])]
    assert asked(from_=ms(NOW - 2 * HOUR)) == [str(going_on["gap_id"])]
    assert asked(to=(NOW - 2 * DAY - HOUR).isoformat()) == [str(old["gap_id"])]
    assert asked(from_=ms(NOW - DAY), to=ms(NOW)) == [str(new["gap_id"]), str(going_on["gap_id"])]


def test_every_gap_comes_once_whatever_is_noted_meanwhile(client, add_gap, recorded):
    made = [add_gap("books", ago=DAY + nth % 3 * HOUR) for nth in range(25)]

    walked, cursor = [], {}
    while True:
        page = client.ask("/v1/coverage", limit=4, **cursor).json
        walked += ids(page)
        add_gap("trades", ago=HOUR)
        if not page["has_more"]:
            break
        cursor = {"cursor": page["next_cursor"]}

    assert len(walked) == len(set(walked))
    assert set(walked) == {str(gap["gap_id"]) for gap in made}
    assert page["next_cursor"] == ""


def test_a_cursor_belongs_to_its_filter(client, add_gap, recorded):
    for _ in range(3):
        add_gap()
    tail = client.ask("/v1/coverage", limit=1, from_=ms(SINCE)).json["next_cursor"]

    assert client.ask("/v1/coverage", limit=2, from_=ms(SINCE), cursor=tail).json["count"] == 2
    for other in ({"kind": "books"}, {"from_": ms(NOW)}, {}):
        refused = client.ask("/v1/coverage", cursor=tail, **other)
        assert (refused.status_code, refused.json["code"]) == (400, "invalid_cursor")
    assert client.ask("/v1/coverage", cursor="forged").json["code"] == "invalid_cursor"


@pytest.mark.parametrize(("name", "value"), [("kind", "candles"), ("status", "gone"), ("limit", 1001), ("from", "now")])
def test_what_is_not_known_is_refused(client, recorded, name, value):
    refused = client.ask("/v1/coverage", **{name: value})

    assert (refused.status_code, refused.json["errors"][0]["name"]) == (400, name)


def test_a_market_is_held_as_far_as_it_existed(client, recorded, add_market):
    answer = client.ask("/v1/markets/rain/coverage").json
    trades, books, settlements = answer["kinds"]

    assert answer["market_id"] == recorded["market_id"]
    assert (trades["from_ts"], trades["to_ts"]) == (ms(NOW - 5 * DAY), ms(NOW - HOUR))
    assert (trades["first_ts"], trades["last_ts"]) == (ms(SINCE), ms(NOW - 3 * HOUR))
    assert (books["first_ts"], books["last_ts"]) == (ms(NOW - 4 * DAY), ms(NOW - 4 * DAY))
    assert (settlements["from_ts"], settlements["first_ts"]) == (None, None)
    assert msgspec.convert(answer, MarketCoverage, strict=False).count == 0

    add_market("snow", status="RESOLVED", created_at=NOW - 9 * DAY, closed_at=NOW - 8 * DAY)
    snow = of_kind(client.ask("/v1/markets/snow/coverage").json, "trades")
    assert (snow["from_ts"], snow["to_ts"], snow["first_ts"]) == (ms(NOW - 9 * DAY), ms(NOW - 8 * DAY), None)


def test_gaps_of_a_market_are_its_own_and_those_of_all_while_it_existed(client, add_gap, recorded, add_market):
    other = add_market("snow", created_at=NOW - 9 * DAY)
    mine = add_gap("books", ago=DAY, market_key=recorded["market_key"])
    everyones = add_gap("trades", ago=2 * DAY)
    add_gap("books", ago=3 * DAY, market_key=other["market_key"])
    before = add_gap("trades", ago=6 * DAY)

    answer = client.ask("/v1/markets/rain/coverage").json

    assert ids(answer) == [str(mine["gap_id"]), str(everyones["gap_id"])]
    assert [gap["market_id"] for gap in answer["data"]] == [recorded["market_id"], None]
    assert of_kind(answer, "books")["gaps"]["lost"] == 1
    assert of_kind(answer, "trades")["gaps"]["fillable"] == 1
    assert of_kind(answer, "trades")["missing_s"] == 3600
    assert str(before["gap_id"]) in ids(client.ask("/v1/markets/snow/coverage").json)
    assert ids(client.ask("/v1/markets/rain/coverage", kind="trades").json) == [str(everyones["gap_id"])]
    assert client.ask("/v1/markets/rain/coverage", limit=1).json["has_more"] is True
    assert client.ask("/v1/markets/nothing/coverage").status_code == 404


def test_days_say_what_they_were_counted_to(client, conn, recorded, add_market):
    other = add_market("snow", created_at=SINCE)
    day = (NOW - DAY).date()
    total = {
        "day": day,
        "kind": "trades",
        "listed": 9,
        "held": 9,
        "added": 2,
        "unlisted": 0,
        "unknown": 0,
        "agrees": True,
    }
    insert(conn, "coverage_days", total)
    insert(
        conn,
        "coverage_days",
        {**total, "kind": "settlements", "listed": 40, "held": 40, "unlisted": 3, "agrees": False},
    )
    of_market = {"day": day, "market_key": recorded["market_key"], "listed": 7, "held": 7, "added": 2, "unlisted": 1}
    insert(conn, "coverage_market_days", of_market)

    everything = client.ask("/v1/coverage").json["days"]
    mine = client.ask("/v1/markets/rain/coverage").json["days"]
    quiet = client.ask(f"/v1/markets/{other['market_id']}/coverage").json["days"]

    assert [(each["kind"], each["source"], each["listed"], each["agrees"]) for each in everything] == [
        ("trades", "exchange", 9, True),
        ("settlements", "chain", 40, False),
    ]
    assert everything[0]["day"] == str(day)
    assert [(each["listed"], each["held"], each["added"], each["unlisted"], each["agrees"]) for each in mine] == [
        (7, 7, 2, 1, False)
    ]
    assert [(each["listed"], each["agrees"]) for each in quiet] == [(0, True)]


def test_it_costs_one_credit(client, recorded):
    assert client.ask("/v1/coverage").headers["X-Request-Cost"] == "1"
    assert client.ask("/v1/markets/rain/coverage").headers["X-Request-Cost"] == "1"


def test_what_is_asked_of_many_gaps_is_read_from_indexes(conn):
    conn.execute(
        """insert into coverage_gaps (kind, from_ts, to_ts, cause, filled_at)
        select case when n % 2 = 0 then 'books' else 'trades' end, now() - n * interval '1 minute', now(), 'closed',
            case when n % 3 > 0 then now() end
        from generate_series(1, 3000) as n"""
    )
    conn.execute("analyze coverage_gaps")
    of = {"exchange": "polymarket"}
    newest = {
        **of,
        "kind": None,
        "status": None,
        "since": EARLIEST,
        "until": LATEST,
        "before_ts": LATEST,
        "before_place": 1,
    }

    page = [node for node in nodes(conn, queries.gaps.sql, newest | {"limit": 51}) if of_gaps(node)]
    conn.execute("set local enable_seqscan = off")
    conn.execute("set local enable_bitmapscan = off")
    whole = [node for node in nodes(conn, queries.kinds.sql, of) if of_gaps(node)]

    assert [(node["Index Name"], node["Actual Rows"]) for node in page] == [("coverage_gaps_from_ts_idx", 51)]
    assert {(node["Node Type"], node["Index Name"]) for node in whole} == {
        ("Index Only Scan", "coverage_gaps_missing_idx"),
        ("Index Only Scan", "coverage_gaps_filled_idx"),
    }


def of_gaps(node):
    return node.get("Relation Name") == "coverage_gaps"


def nodes(conn, query, params):
    """The nodes of a query's plan."""
    waiting = [conn.execute("explain (analyze, format json) " + query, params).fetchone()[0][0]["Plan"]]
    while waiting:
        node = waiting.pop()
        yield node
        waiting += node.get("Plans", ())
