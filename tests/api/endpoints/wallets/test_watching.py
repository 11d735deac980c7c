"""Wallets that accounts watch: which, from which block on, and what is kept of them."""

from __future__ import annotations

import json
import threading

import psycopg
import pytest

from sql.queries import capture
from tests.api.conftest import generous
from tests.api.endpoints.wallets.settled import ANN, BOB, match, send, watch
from tests.patience import until


def test_wallets_are_watched_listed_and_let_go(client, conn):
    upper = "0x" + BOB[2:].upper()

    assert watch(client, ANN).json == {"address": ANN, "watching": True}
    assert watch(client, upper).json == {"address": BOB, "watching": True}
    assert watch(client, ANN).status_code == 200  # again
    assert client.ask("/v1/wallets/watched").json == {"wallets": [ANN, BOB], "count": 2}

    for _ in range(2):
        gone = send(client, "DELETE", f"/v1/wallets/{upper}/watch")
        assert (gone.status_code, gone.json) == (200, {"address": BOB, "watching": False})
    assert client.ask("/v1/wallets/watched").json == {"wallets": [ANN], "count": 1}
    assert watch(client, BOB).headers["X-Request-Cost"] == "1"
    assert client.ask("/v1/wallets/watched").json["count"] == 2


def test_each_account_watches_its_own(client, conn):
    other = generous(conn, "other@example.com")
    watch(client, ANN)
    watch(client, BOB, key=other)

    assert client.ask("/v1/wallets/watched").json["wallets"] == [ANN]
    assert client.ask("/v1/wallets/watched", key=other).json["wallets"] == [BOB]
    send(client, "DELETE", f"/v1/wallets/{BOB}/watch")
    assert client.ask("/v1/wallets/watched", key=other).json["wallets"] == [BOB]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("{}", "missing_parameter"),
        ("", "invalid_body"),
        ("{", "invalid_body"),
        ('{"address": null}', "invalid_parameter"),
        ('{"address": 7}', "invalid_parameter"),
        ('{"address": ""}', "invalid_parameter"),
        ('{"address": "0x12"}', "invalid_parameter"),
        (json.dumps({"address": ANN + "00"}), "invalid_parameter"),
        (json.dumps({"address": ANN[:-1] + "g"}), "invalid_parameter"),
        (json.dumps({"address": ANN + "\n"}), "invalid_parameter"),
    ],
)
def test_what_cannot_be_watched_is_refused_by_name(client, conn, text, code):
    answer = send(client, "POST", "/v1/wallets/watch", body=text)

    assert (answer.status_code, answer.json["code"]) == (400, code)
    if code != "invalid_body":
        assert [error["name"] for error in answer.json["errors"]] == ["address"]
    assert answer.headers["X-Request-Cost"] == "0"
    assert conn.execute("select count(*) from wallets_watched").fetchone() == (0,)


def test_there_is_an_end_to_how_many_are_watched(client, conn):
    watch(client, ANN)
    conn.execute(
        "insert into wallets_watched (account_id, wallet, blocks)"
        " select account_id, decode(lpad(to_hex(n), 40, '0'), 'hex'), '{[0,)}'"
        " from wallets_watched, generate_series(1, 999) as n"
    )

    refused = watch(client, BOB)

    assert (refused.status_code, refused.json["code"]) == (400, "invalid_parameter")
    assert watch(client, ANN).status_code == 200
    send(client, "DELETE", f"/v1/wallets/{ANN}/watch")
    assert watch(client, BOB).status_code == 200


def test_capture_begins_with_the_block_after_the_head(client, conn, chain):
    watch(client, ANN)
    chain.block(100, match())
    chain.block(101, match(), match(side=-1))

    found = client.ask(f"/v1/wallets/{ANN}/activity").json

    assert (found["watching"], found["count"]) == (True, 2)
    assert [(row["block_number"], row["side"], row["role"]) for row in found["data"]] == [
        (101, "SELL", "maker"),
        (101, "BUY", "maker"),
    ]
    chain.head(101)
    send(client, "DELETE", f"/v1/wallets/{ANN}/watch")
    chain.block(102, match())
    kept = client.ask(f"/v1/wallets/{ANN}/activity").json
    assert (kept["watching"], kept["count"]) == (False, 2)


def test_watching_begins_behind_the_blocks_that_are_being_written(client, conn, chain, database_url):
    answers = []
    watching = threading.Thread(target=lambda: answers.append(watch(client, ANN)))
    with psycopg.connect(database_url) as writer:
        capture.share_watching(writer)
        writer.execute("update chain_heads set head = 105")
        watching.start()
        waiting = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        until(lambda: writer.execute(waiting).fetchone() == (1,))
    watching.join()

    assert [answer.status_code for answer in answers] == [200]
    assert conn.execute("select lower(blocks) from wallets_watched").fetchone() == (106,)


def test_what_was_captured_for_others_does_not_show(client, conn, chain):
    other = generous(conn, "other@example.com")
    watch(client, ANN)
    watch(client, ANN, key=other)
    chain.block(101, match())
    chain.head(101)
    send(client, "DELETE", f"/v1/wallets/{ANN}/watch")
    chain.block(102, match())
    chain.head(102)
    watch(client, ANN)
    watch(client, ANN)  # again
    chain.block(103, match())

    def blocks(**whose):
        return [row["block_number"] for row in client.ask(f"/v1/wallets/{ANN}/activity", **whose).json["data"]]

    assert blocks() == [103, 101]
    assert blocks(key=other) == [103, 102, 101]


def test_an_account_that_never_watched_sees_no_activity(client, conn, chain):
    watch(client, ANN)
    chain.block(101, match())

    other = client.ask(f"/v1/wallets/{ANN}/activity", key=generous(conn, "other@example.com")).json

    assert other == {
        "address": ANN, "watching": False, "data": [], "count": 0, "next_cursor": "", "has_more": False,
    }  # fmt: skip
