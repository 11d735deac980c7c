"""`presage equivalents`: an operator's verdict in the place of the rules'."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cli.main import app
from tests.factories import insert


@pytest.fixture
def presage(database_url, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")

    def run(*words):
        return CliRunner().invoke(app, ["equivalents", *words, "--database-url", database_url])

    return run


@pytest.fixture
def pair(conn):
    """Two markets that were judged identical."""
    keys = []
    for market_id, exchange in (("0x" + "1" * 64, "polymarket"), ("KX-1", "kalshi")):
        row = {"market_id": market_id, "slug": f"rain-{exchange}", "question": "Rain?", "status": "ACTIVE"}
        row |= {"exchange": exchange, "outcomes": ["Yes", "No"], "token_ids": [f"{market_id}y", f"{market_id}n"]}
        keys.append(insert(conn, "markets", row)["market_key"])
    verdict = {"verdict": "identical", "detail": "every clause is equal", "score": 99, "rules_version": 1}
    texts = [
        text
        for (text,) in conn.execute(
            "select market_text(m.raw, m.event_title) from markets m order by market_key"
        ).fetchall()
    ]
    row = {"left_key": keys[0], "right_key": keys[1], "left_text": texts[0], "right_text": texts[1]}
    insert(conn, "equivalents", row | verdict)
    return "rain-polymarket", "KX-1"


def test_a_verdict_is_overruled_and_restored_and_both_are_on_the_record(presage, conn, pair):
    overruled = presage("overrule", *pair, "related", "--why", "one pays half when it is void")
    shown = presage("show", pair[1])
    restored = presage("restore", *reversed(pair))

    assert overruled.exit_code == restored.exit_code == 0, overruled.output + restored.output
    assert "related (an operator's)" in shown.output
    assert "one pays half when it is void" in shown.output
    assert restored.output.endswith("are identical again\n")
    assert conn.execute("select overruled, overruled_why, overruled_at from equivalents").fetchone() == (None,) * 3
    entries = conn.execute("select action, detail ->> 'before', detail ->> 'now' from audit_log order by ts").fetchall()
    assert entries == [
        ("equivalents.overrule", "identical", "related"),
        ("equivalents.restore", "related", "identical"),
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["overrule", "rain-polymarket", "KX-1", "same", "--why", "x"], "identical, inverted, subset"),
        (["overrule", "rain-polymarket", "KX-1", "related", "--why", " "], "a reason of 1 to 300 characters"),
        (["overrule", "rain-polymarket", "KX-1", "subset", "--why", "x"], "with subset"),
        (["overrule", "rain-polymarket", "KX-1", "related", "--why", "x", "--within", "KX-1"], "with subset"),
        (["overrule", "rain-polymarket", "KX-2", "related", "--why", "x"], "there is no market KX-2"),
        (["overrule", "KX-1", "KX-1", "related", "--why", "x"], "were not compared"),
        (["show", "KX-1", "--verdict", "same"], "identical, inverted, subset"),
    ],
)
def test_what_cannot_be_done_is_said(presage, conn, pair, words, said):
    done = presage(*words)

    assert done.exit_code != 0
    assert said in " ".join((done.output + str(done.exception)).split()).replace("│ ", "")
    assert conn.execute("select overruled from equivalents").fetchone() == (None,)


def test_a_subset_has_a_direction(presage, conn, pair):
    done = presage("overrule", *pair, "subset", "--why", "a shorter window", "--within", pair[1])

    assert done.exit_code == 0, done.output
    assert conn.execute("select verdict, within from equivalent_verdicts").fetchone() == ("subset", "right")


def test_a_text_that_changed_since_it_was_judged_is_not_decided_upon(presage, conn, pair):
    conn.execute("""update markets set raw = '{"rules_primary": "other"}' where market_id = 'KX-1'""")

    done = presage("overrule", *pair, "related", "--why", "x")

    assert done.exit_code != 0
    assert "a text has changed" in " ".join((done.output + str(done.exception)).split()).replace("│ ", "")
    assert conn.execute("select overruled from equivalents").fetchone() == (None,)
