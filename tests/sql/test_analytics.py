"""Analysts read the views, every column documented, and nothing else; the questions of their page are answered."""

from __future__ import annotations

import re
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
import typer

from cli.commands import analyst
from sql import timescale
from tests.api.endpoints.test_shapes import book
from tests.factories import add_market, add_trades, insert

PAGE = (Path(__file__).parents[2] / "docs/analysts.md").read_text()
QUESTIONS = re.findall(r"^([^\n#|`][^\n]*\?)\n\n```sql\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL)
VIEWS = sorted(path.stem for path in timescale.ANALYTICS.glob("*.sql"))
HOUR = timedelta(hours=1)
WALLET = bytes(range(20))


@pytest.fixture
def name(conn):
    """A role's name that no other test has, dropped afterwards."""
    name = f"analyst_{secrets.token_hex(4)}"
    yield name
    if conn.execute("select from pg_roles where rolname = %s", [name]).fetchone():
        analyst.revoke(conn, name)


@pytest.fixture
def ada(database_url, conn, name):
    """A connection as an analyst."""
    address = analyst.address(database_url, name, analyst.grant(conn, name))
    with psycopg.connect(address, autocommit=True) as connection:
        yield connection


def filled(conn):
    """Data for every question."""
    now = datetime.now(UTC)  # not that of the import: the suite may take longer than what is asked for
    rain = add_market(conn, "will-it-rain")
    for hours in range(5):
        ts = now - hours * HOUR - timedelta(minutes=5)
        add_trades(conn, rain, [{"ts": ts, "price": "0.5", "size": 100}, {"ts": ts + timedelta(minutes=1)}])
        insert(
            conn,
            "quotes",
            {"market_key": rain["market_key"], "outcome": 0, "ts": ts, "bid": 490000, "ask": 510000, "mid": 500000},
        )
    insert(conn, "live_books", book(rain["market_key"]))
    over = add_market(
        conn, "over", status="RESOLVED", winning_outcome=0, resolved_at=now - 2 * HOUR, outcome_prices=[1000000, 0]
    )
    add_trades(conn, over, [{"ts": now - timedelta(days=2), "price": "0.3"}])
    insert(
        conn,
        "signals",
        {
            "ts": now - 2 * HOUR,
            "market_key": rain["market_key"],
            "outcome": 0,
            "signal_id": 1,
            "type": "momentum",
            "value": 0.1,
            "threshold": 0.05,
            "score": 2,
            "direction": 1,
            "window_s": 3900,
        },
    )
    insert(
        conn, "coverage_gaps", {"kind": "books", "from_ts": now - HOUR / 2, "to_ts": now - HOUR / 3, "cause": "test"}
    )
    contract = insert(conn, "chain_contracts", {"address": WALLET, "name": "test"})["contract_key"]
    token = insert(conn, "chain_tokens", {"token_id": rain["token_ids"][0]})["token_key"]
    insert(
        conn,
        "settlements",
        {
            "ts": now - HOUR,
            "block_number": 1,
            "log_index": 1,
            "tx_hash": bytes(32),
            "contract_key": contract,
            "token_key": token,
            "maker": WALLET,
            "taker": WALLET,
            "side": 1,
            "price": 500000,
            "size": 2000000,
            "value_usd": 1000000,
            "fee_usd": 0,
            "is_taker_order": False,
            "counted": True,
        },
    )
    insert(
        conn,
        "wallet_positions",
        {
            "base": False,
            "wallet": WALLET,
            "token_key": token,
            "buys": 1,
            "bought": 2000000,
            "bought_usd": 800000,
            "sells": 0,
            "sold": 0,
            "sold_usd": 0,
            "held": 2000000,
            "covered": 2000000,
            "cost_usd": 800000,
            "realized_usd": 0,
            "left_out": 0,
        },
    )
    insert(
        conn,
        "live_prices",
        {"market_key": rain["market_key"], "outcome": 0, "bid": 490000, "ask": 510000, "mid": 500000, "ts": now},
    )


def test_every_column_of_every_view_is_explained(conn):
    unsaid = conn.execute("""
        select c.relname, a.attname
        from pg_class c
        join pg_attribute a on a.attrelid = c.oid and a.attnum > 0
        where c.relnamespace = 'analytics'::regnamespace and col_description(c.oid, a.attnum) is null
    """).fetchall()
    views = conn.execute(
        "select relname, obj_description(oid, 'pg_class') from pg_class "
        "where relnamespace = 'analytics'::regnamespace order by relname"
    ).fetchall()

    assert unsaid == []
    assert [view for view, _ in views] == VIEWS
    assert all(said for _, said in views)
    assert all(f"`{view}`" in PAGE for view in VIEWS)


def test_the_views_are_the_same_under_both_licences(conn, community):
    columns = (
        "select table_name, column_name, data_type from information_schema.columns "
        "where table_schema = 'analytics' order by 1, ordinal_position"
    )

    assert community.execute(columns) == conn.execute(columns).fetchall()


def test_there_are_ten_questions():
    assert len(QUESTIONS) == 10


@pytest.mark.parametrize(("question", "query"), QUESTIONS, ids=[question[:40] for question, _ in QUESTIONS])
def test_every_question_is_answered_to_an_analyst(conn, ada, question, query):
    filled(conn)

    rows = ada.execute(query).fetchall()

    assert rows


def test_amounts_are_exact_and_readable(conn, ada):
    filled(conn)

    traded = ada.execute(
        "select price::text, size::text, value_usd::text, outcome_name, side from trades order by ts desc limit 1"
    )
    held = ada.execute("select wallet, slug, cost_usd, mark_price, unrealized_usd from wallet_positions")

    assert traded.fetchone() == ("0.500000", "10.000000", "5.000000", "Yes", "BUY")
    wallet, slug, cost, mark, unrealized = held.fetchone()
    assert (wallet, slug) == ("0x" + WALLET.hex(), "will-it-rain")
    assert (float(cost), float(mark), float(unrealized)) == (0.8, 0.5, 0.2)


@pytest.mark.parametrize(
    "statement",
    [
        "select * from public.api_keys",
        "select * from public.settings",
        "select * from public.trades",
        "select drop_chunks('public.trades', now())",
        "create table public.mine (id int)",
        "create table analytics.mine (id int)",
        "delete from analytics.markets",
        "set role pg_read_all_data",
        "copy (select 1) to program 'true'",
        "select pg_read_file('/etc/passwd')",
    ],
)
def test_an_analyst_reads_nothing_else_and_writes_nothing(conn, ada, statement):
    filled(conn)

    ada.execute("set default_transaction_read_only = off")
    with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.ReadOnlySqlTransaction)):
        ada.execute(statement)


def test_a_statement_is_cut_off_after_a_minute_and_connections_are_few(conn, ada, database_url, name):
    settings = {setting: ada.execute(f"show {setting}").fetchone()[0] for setting in analyst.DEFAULTS}
    assert settings["statement_timeout"] == "1min"
    assert settings["default_transaction_read_only"] == "on"

    limit = conn.execute("select rolconnlimit from pg_roles where rolname = %s", [name]).fetchone()
    assert limit == (4,)
    ada.execute("set statement_timeout = '50ms'")
    with pytest.raises(psycopg.errors.QueryCanceled):
        ada.execute("select pg_sleep(5)")


def test_a_second_call_gives_a_new_password_and_the_old_one_no_longer_opens(conn, database_url, name):
    first = analyst.grant(conn, name)
    second = analyst.grant(conn, name)

    assert first != second
    with psycopg.connect(analyst.address(database_url, name, second)) as connection:
        assert connection.execute("select count(*) from analytics.markets").fetchone() == (0,)
    stored = conn.execute("select rolpassword from pg_authid where rolname = %s", [name]).fetchone()[0]
    assert stored.startswith("SCRAM-SHA-256$")


def test_no_statement_has_the_password(conn, name):
    said = []
    conn.add_notice_handler(lambda notice: said.append(notice.message_primary))
    conn.execute("set client_min_messages = log")
    conn.execute("set log_statement = 'all'")

    password = analyst.grant(conn, name)

    assert any("SCRAM-SHA-256$" in each for each in said)
    assert [each for each in said if password in each] == []


@pytest.mark.parametrize("bad", ["", "Ada", "ada; drop role x", "pg_ada", "1ada", "ä" * 3, "a" * 64])
def test_only_plain_names_are_taken(conn, bad):
    with pytest.raises(typer.BadParameter, match="not a valid role name"):
        analyst.grant(conn, bad)


def test_a_role_of_somebody_else_is_neither_changed_nor_removed(conn):
    (mine,) = conn.execute("select current_user").fetchone()

    with pytest.raises(typer.BadParameter, match="was not created by this command"):
        analyst.grant(conn, mine)
    with pytest.raises(typer.BadParameter, match="was not created by this command"):
        analyst.revoke(conn, mine)


def test_the_address_keeps_host_port_database_and_options():
    assert (
        analyst.address("postgresql://presage:x@localhost:5433/presage?sslmode=require", "ada", "p/w")
        == "postgresql://ada:p%2Fw@localhost:5433/presage?sslmode=require"
    )
