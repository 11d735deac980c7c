"""Active markets by their end and titles, as triggers keep them."""

from __future__ import annotations

import datetime as dt

END = dt.datetime(2026, 11, 1, 12, tzinfo=dt.UTC)


def test_active_markets_are_kept_with_their_end_and_titles(conn, add_market):
    rain = add_market("rain", question="Will it RAIN?", event_title="Weather", end_time=END)
    snow = add_market("snow", question="Snow?")
    add_market("ended", status="CLOSED")

    def kept():
        return conn.execute("select market_key, end_time, titles from open_markets order by 1").fetchall()

    assert kept() == [
        (rain["market_key"], END, "will it rain?\nrain\nweather"),
        (snow["market_key"], None, "snow?\nsnow"),
    ]

    conn.execute("update markets set question = 'Sleet?' where slug = 'snow'")
    conn.execute("update markets set status = 'CLOSED' where slug = 'rain'")
    assert kept() == [(snow["market_key"], None, "sleet?\nsnow")]

    conn.execute("update markets set status = 'ACTIVE' where slug = 'rain'")
    conn.execute("delete from markets where slug = 'snow'")
    assert kept() == [(rain["market_key"], END, "will it rain?\nrain\nweather")]


def test_a_change_of_other_fields_neither_rewrites_nor_locks_a_row(conn, add_market):
    add_market()
    add_market("other", end_time=END)
    before = conn.execute("select ctid from open_markets order by 1").fetchall()

    conn.execute("update markets set volume_usd = 1")

    kept = conn.execute("select ctid, xmax::text from open_markets order by 1").fetchall()
    assert kept == [(place, "0") for (place,) in before]
