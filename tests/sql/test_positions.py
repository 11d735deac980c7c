"""Positions from rows, by average cost; the same under either licence."""

from __future__ import annotations

import pytest

FOLD = """
    select array_to_string(position_of(shares, usd, opening order by n), ' ')
    from (values {rows}) as r (n, shares, usd), (select {opening}::numeric[] as opening) as o
"""
CASES = {
    "bought twice, sold once": ([(100, 40), (100, 51), (-50, 30)], "150 150 68.250000000000 7.250000000000 0"),
    "all sold leaves nothing": ([(3, 1), (-1, 1), (-2, 1)], "0 0 0.000000000000 1.000000000000 0"),
    "more sold than seen": ([(10, 4), (-40, 20)], "-30 0 0.000000000000 1.000000000000 1"),
    "sold before it was seen": ([(-10, 5), (10, 4)], "0 10 4.000000000000 0.000000000000 1"),
    "no price": ([(10, None), (10, 4), (-5, None)], "15 5 2.000000000000 0.000000000000 2"),
    "nothing at all": ([(0, 7)], "0 0 0.000000000000 0.000000000000 0"),
    "thirds": ([(3, 1), (-1, 0)], "2 2 0.666666666667 -0.333333333333 0"),
}


def fold(rows, opening="null"):
    values = ", ".join(
        f"({n}, {shares}::bigint, {'null' if usd is None else usd}::numeric)" for n, (shares, usd) in enumerate(rows)
    )
    return FOLD.format(rows=values, opening=opening)


@pytest.mark.parametrize(("rows", "expected"), CASES.values(), ids=CASES)
def test_rows_come_to_a_position(conn, rows, expected):
    assert conn.execute(fold(rows)).fetchone() == (expected,)


def test_a_position_goes_on_from_where_it_was(conn):
    assert conn.execute(fold([(-50, 30)], "'{200, 200, 91, 0, 0}'")).fetchone() == (
        "150 150 68.250000000000 7.250000000000 0",
    )


def test_the_community_licence_comes_to_the_same(community):
    for rows, expected in CASES.values():
        assert community.execute(fold(rows)) == [(expected,)]
    community.execute(
        "insert into chain_tokens (token_id) values ('71');"
        "insert into wallet_fills"
        " (wallet, ts, block_number, log_index, is_taker, token_key, side, price, size, value_usd, fee_usd)"
        " values ('\\x01', now(), 1, 0, false, 1, 1, 400000, 100, 40, 1),"
        " ('\\x01', now(), 2, 0, true, 1, -1, 500000, 50, 25, 0);"
        "update positions_head set done = 1;"
        "insert into wallet_positions values (false, '\\x01', 1, 1, 100, 40, 0, 0, 0, 100, 100, 41, 0, 0, now(), now())"
    )

    found = community.execute("select held, realized_usd::text, buys, sells from positions_now('\\x01')")

    assert [tuple(map(str, row)) for row in found] == [("50", "4.500000000000", "1", "1")]
