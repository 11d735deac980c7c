"""Book events of past days move into packs, once each, and are restored unchanged."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given

from orchestration.ingest.storage.writer import Writer
from orchestration.maintenance import packs
from sql import database
from sql.book_hashes import BookText, book_hash, head
from sql.packs import MAX_EVENTS, BookEvent, key, pack, unpack
from tests.orchestration.ingest.builders import book, change, make_normalizer, token

NOW = datetime.now(UTC)
TODAY = packs.horizon(NOW)
BIDS, ASKS = [(400_000, 5_000_000)], [(420_000, 2_000_000)]

pytestmark = pytest.mark.license("apache")  # with the columnstore there are no packs


def ms(days: float) -> int:
    """Return an instant some days before the first one that is not packed."""
    return int((TODAY - timedelta(days=days)).timestamp() * 1000)


@pytest.fixture
def hear(conn, database_url, add_market):
    """Return `hear(message, …)`, which writes as the live feed does."""
    market = add_market()
    of = token(market["market_key"], 0, market["token_ids"][0])
    follower, writer = make_normalizer(of), Writer(conn)

    def heard(*messages):
        follower.apply(messages)
        writer.write(follower.cut_batch())
        assert follower.counts.refused == 0

    heard.token = of
    return heard


def rows(conn):
    return conn.execute("select * from book_events order by ts, seq").fetchall()


def an_event(ts, seq, price, size):
    return BookEvent(ts, seq, 1, price, size, None, None, None, None, None)


def kept(conn):
    """Return the packs, oldest first: their events."""
    found = conn.execute("select events, data from book_packs order by ts").fetchall()
    assert [count for count, _ in found] == [len(unpack(data)) for _, data in found]
    return [[(event.ts // 1000, event.side) for event in unpack(data).events()] for _, data in found]


def test_past_days_are_packed_a_pack_a_day_but_for_the_newest_snapshot(conn, hear):
    hear(book(hear.token, BIDS, ASKS, ms(2)))
    hear(change(hear.token, 1, 410_000, 1_000_000, ts_ms=ms(1.5)))
    hear(book(hear.token, BIDS, ASKS, ms(1), "ab" * 20))
    hear(change(hear.token, 1, 410_000, 2_000_000, ts_ms=ms(0.5)))
    hear(change(hear.token, 1, 410_000, 0, ts_ms=ms(0)))

    packed = packs.bring_up_to_date(conn, NOW)

    assert (packed.events, packed.packs, packed.finished) == (3, 2, True)
    assert kept(conn) == [[(ms(2), None), (ms(1.5), 1)], [(ms(0.5), 1)]]
    assert [(row[0].timestamp() * 1000, row[5]) for row in rows(conn)] == [(ms(1), None), (ms(0), 1)]


def test_the_snapshot_that_a_new_connection_is_greeted_with_is_known(conn, hear):
    hear(book(hear.token, BIDS, ASKS, ms(1), "ab" * 20), change(hear.token, 1, 410_000, 1, ts_ms=ms(0.5)))
    packs.bring_up_to_date(conn, NOW)
    before = rows(conn)

    again = make_normalizer(hear.token)
    again.apply([book(hear.token, BIDS, ASKS, ms(1), "ab" * 20)])
    Writer(conn).write(again.cut_batch())

    assert rows(conn) == before


def test_a_second_pass_finds_nothing_to_do(conn, hear):
    hear(book(hear.token, BIDS, ASKS, ms(1)), change(hear.token, 1, 410_000, 1, ts_ms=ms(0.5)))
    packs.bring_up_to_date(conn, NOW)
    before = kept(conn), rows(conn)

    assert packs.bring_up_to_date(conn, NOW) == packs.PackingResult()
    assert (kept(conn), rows(conn)) == before


def test_what_comes_late_goes_where_it_belongs(conn, hear):
    hear(book(hear.token, BIDS, ASKS, ms(2)))
    for days in (1.9, 1.7, 0.9):
        hear(change(hear.token, 1, 410_000, 1_000_000, ts_ms=ms(days)))
    hear(book(hear.token, BIDS, ASKS, ms(0.1)))
    packs.bring_up_to_date(conn, NOW)
    hear(change(hear.token, 1, 390_000, 1_000_000, ts_ms=ms(1.8)))
    hear(book(hear.token, BIDS, ASKS, ms(0)))

    packed = packs.bring_up_to_date(conn, NOW)

    assert packed.events == 2
    assert kept(conn) == [
        [(ms(2), None), (ms(1.9), 1), (ms(1.8), 1), (ms(1.7), 1)],
        [(ms(0.9), 1), (ms(0.1), None)],
    ]
    (last,) = conn.execute("select data from book_packs order by ts desc limit 1").fetchone()
    assert unpack(last).base == {390_000 << 1: 1_000_000, 410_000 << 1: 1_000_000, 400_000 << 1: 5_000_000, 420_000 << 1 | 1: 2_000_000}  # fmt: skip  # noqa: E501


def test_a_long_day_is_several_packs_each_upon_the_one_before(conn, hear):
    start = ms(1)
    hear(book(hear.token, BIDS, ASKS, start))
    hear(*(change(hear.token, 1, 410_000, n + 1, ts_ms=start + n) for n in range(MAX_EVENTS + 10)))
    hear(book(hear.token, BIDS, ASKS, ms(0)))

    packs.bring_up_to_date(conn, NOW)

    first, second = (unpack(data) for (data,) in conn.execute("select data from book_packs order by ts"))
    assert (len(first), len(second)) == (MAX_EVENTS, 11)
    assert (second.base, second.known) == first.after()


def test_an_outcome_with_very_many_rows_is_packed_in_several_transactions(conn, hear, monkeypatch):
    def pass_over(most):
        monkeypatch.setattr(packs, "MAX_ROWS_PER_TRANSACTION", most)
        sizes = []
        packed = packs.bring_up_to_date(conn, NOW, report=lambda so_far: sizes.append(so_far.events))
        return packed, [later - earlier for earlier, later in zip([0, *sizes], sizes, strict=False)]

    hear(book(hear.token, BIDS, ASKS, ms(2)))
    for nth in range(40):
        hear(change(hear.token, 1, 410_000, nth, ts_ms=ms(1.9) + nth // 2))  # two at each instant
    hear(book(hear.token, BIDS, ASKS, ms(1.8)))  # stays
    for nth in range(40):
        hear(change(hear.token, 1, 410_000, nth, ts_ms=ms(0.5) + nth))

    packed, sizes = pass_over(10)

    assert packed.finished
    assert sum(sizes) == packed.events == 81
    assert max(sizes) <= 11
    assert [instant for pack in kept(conn) for instant, _ in pack] == [
        ms(2),
        *(ms(1.9) + nth // 2 for nth in range(40)),
        *(ms(0.5) + nth for nth in range(40)),
    ]
    assert pass_over(10)[0].events == 0


def test_more_rows_of_one_instant_than_a_transaction_takes_are_packed_together(conn, hear, monkeypatch):
    monkeypatch.setattr(packs, "MAX_ROWS_PER_TRANSACTION", 5)
    hear(book(hear.token, BIDS, ASKS, ms(2)))
    hear(*(change(hear.token, 1, 410_000, 1 + nth, ts_ms=ms(1)) for nth in range(20)))
    hear(book(hear.token, BIDS, ASKS, ms(0.5)))

    assert packs.bring_up_to_date(conn, NOW).events == 21
    assert len(rows(conn)) == 1


def test_rows_come_back_as_they_were(conn, hear):
    hear(book(hear.token, BIDS, ASKS, ms(1), "ab" * 20), book(hear.token, BIDS, ASKS[:0], ms(0.9)))
    same = change(hear.token, -1, 430_000, 1_000_000, ts_ms=ms(0.8), hash_="cd" * 20)
    other = change(hear.token, -1, 430_000, 2_000_000, ts_ms=ms(0.8), hash_="ef" * 20)
    hear(same)
    hear(other)
    hear(same)
    hear(book(hear.token, BIDS, ASKS, ms(0)))
    before = rows(conn)
    assert packs.bring_up_to_date(conn, NOW).events == 5

    assert packs.restore_rows(conn, TODAY - timedelta(days=2), TODAY) == 5

    assert rows(conn) == before
    assert kept(conn) == []


def test_rows_whose_hashes_are_computed_come_back_as_they_were(conn, hear):
    fields = ',"min_order_size":"5","tick_size":"0.01","neg_risk":false,"last_trade_price":"0.41"}'
    text = BookText({key(1, *BIDS[0][:1]): BIDS[0][1], key(-1, *ASKS[0][:1]): ASKS[0][1]})
    start = head(*conn.execute("select market_id, token_ids[1] from markets").fetchone())
    hear(book(hear.token, BIDS, ASKS, ms(1), book_hash(text, start, ms(1), fields).hex()))
    for n in range(1, 20):
        text.set(key(1, n * 10_000), n)
        hash_ = book_hash(text, start, ms(0.9) + n, fields)
        hear(change(hear.token, 1, n * 10_000, n, ts_ms=ms(0.9) + n, hash_=hash_.hex()))
    hear(book(hear.token, BIDS, ASKS, ms(0)))
    before = rows(conn)

    assert packs.bring_up_to_date(conn, NOW).events == 20
    (data,) = conn.execute("select data from book_packs").fetchone()
    assert hash_ not in data
    assert packs.restore_rows(conn, TODAY - timedelta(days=2), TODAY) == 20
    assert rows(conn) == before


def test_changes_without_a_book_before_them_are_kept_and_said_to_be_no_book(conn, hear):
    hear(change(hear.token, 1, 410_000, 1, ts_ms=ms(1)), change(hear.token, 1, 410_000, 0, ts_ms=ms(0.5)))

    packs.bring_up_to_date(conn, NOW)

    assert kept(conn) == [[(ms(1), 1), (ms(0.5), 1)]]
    assert conn.execute("select whole_from from book_packs").fetchone() == (None,)


def test_the_columnstore_needs_no_packs(monkeypatch, conn, hear):
    hear(change(hear.token, 1, 410_000, 1, ts_ms=ms(1)))
    monkeypatch.setattr("sql.database.license", lambda _: "timescale")

    assert packs.bring_up_to_date(conn, NOW) == packs.PackingResult()
    assert len(rows(conn)) == 1


@given(data=st.data(), most=st.integers(1, 4), beside=st.booleans())
def test_property_packs_begin_each_at_another_instant_upon_all_before_them(data, most, beside):
    """`beside`: events of the snapshot's instant stay with it; otherwise they were packed before it came."""
    instants = sorted(data.draw(st.lists(st.integers(0, 4), min_size=2, max_size=25)))
    events = [
        an_event(1_795_000_000_000_000 + at, seq, data.draw(st.integers(1, 3)), data.draw(st.integers(0, 2)))
        for seq, at in enumerate(instants)
    ]
    newest = data.draw(st.sampled_from(events))
    snapshot = BookEvent(newest.ts, newest.seq, None, None, None, [7], [7], [], [], None)
    stay = [event for event in events if beside and event.ts == newest.ts and event is not newest] + [snapshot]
    moved = [event for event in events if event is not newest and event not in stay]
    assume(moved)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packs, "MAX_EVENTS", most)
        made = list(packs.repacked(moved, [], None, stay, moved[0].ts))

    found = [unpack(each.data) for each in made]
    assert len({each.ts_us for each in made}) == len(made)
    assert [event for each in found for event in each.events()] == moved
    for each, start in zip(found, made, strict=True):
        if not any(event.ts == start.ts_us for event in stay):
            first = packs.BY_TIME_AND_SEQ(next(each.events()))
            before = [event for event in (*moved, *stay) if packs.BY_TIME_AND_SEQ(event) < first]
            assert each.base == (pack(sorted(before, key=packs.BY_TIME_AND_SEQ), {}, known=False)[1] if before else {})


def test_changes_around_the_newest_snapshot_within_its_instant_stay_with_it(conn, hear):
    hear(change(hear.token, 1, 380_000, 1_000_000, ts_ms=ms(1)))
    for size in (1, 2):
        hear(change(hear.token, 1, 410_000, size, ts_ms=ms(0.5)))
        hear(book(hear.token, BIDS, ASKS, ms(0.5), f"{size:02x}" * 20))
        hear(change(hear.token, 1, 390_000, size, ts_ms=ms(0.5)))
    hear(change(hear.token, 1, 370_000, 3, ts_ms=ms(0.4)))
    before = rows(conn)

    packed = packs.bring_up_to_date(conn, NOW)

    assert (packed.events, kept(conn)) == (2, [[(ms(1), 1)], [(ms(0.4), 1)]])
    assert rows(conn) == before[1:-1]
    (last,) = conn.execute("select data from book_packs order by ts desc limit 1").fetchone()
    assert unpack(last).base == {390_000 << 1: 2, 400_000 << 1: 5_000_000, 420_000 << 1 | 1: 2_000_000}
    assert packs.bring_up_to_date(conn, NOW) == packs.PackingResult()
    packs.restore_rows(conn, TODAY - timedelta(days=2), TODAY)
    assert rows(conn) == before


def test_a_change_that_comes_late_at_the_newest_snapshots_instant_is_built_upon(conn, hear):
    hear(change(hear.token, 1, 380_000, 1_000_000, ts_ms=ms(1)))
    hear(book(hear.token, BIDS, ASKS, ms(0.5)), change(hear.token, 1, 370_000, 3, ts_ms=ms(0.4)))
    packs.bring_up_to_date(conn, NOW)
    before, rows_before = kept(conn), rows(conn)
    late = change(hear.token, 1, 390_000, 2, ts_ms=ms(0.5))
    hear(late, change(hear.token, 1, 360_000, 4, ts_ms=ms(0.3)))

    packs.bring_up_to_date(conn, NOW)

    assert kept(conn) == [before[0], [(ms(0.4), 1), (ms(0.3), 1)]]
    assert len(rows(conn)) == len(rows_before) + 1
    (last,) = conn.execute("select data from book_packs order by ts desc limit 1").fetchone()
    assert unpack(last).base == {390_000 << 1: 2, 400_000 << 1: 5_000_000, 420_000 << 1 | 1: 2_000_000}


def test_only_chunks_that_rows_have_left_are_rewritten(conn, hear):
    def files():
        found = conn.execute("select pg_relation_filenode(chunk) from show_chunks('book_events') as chunk")
        return [file for (file,) in found]

    conn.execute("alter table book_events set (autovacuum_enabled = off)")  # it would hold a chunk's lock
    for days in (1.9, 0.9):
        hear(*(change(hear.token, 1, 410_000, n + 1, ts_ms=ms(days) + n) for n in range(6000)))
    options = conn.execute("select c.reloptions from show_chunks('book_events') as s join pg_class c on c.oid = s")
    assert {tuple(each) for (each,) in options} == {("autovacuum_enabled=off",)}
    whole = files()
    assert packs.bring_up_to_date(conn, NOW).chunks == len(whole)
    assert not set(whole) & set(files())
    emptied = files()
    hear(*(change(hear.token, 1, 420_000, n + 1, ts_ms=ms(0.8) + n) for n in range(6000)))

    assert packs.bring_up_to_date(conn, NOW).chunks == 1
    assert len(set(emptied) & set(files())) == len(whole) - 1


def test_a_chunk_that_was_read_at_the_time_is_rewritten_by_the_next_pass(monkeypatch, conn, database_url, hear):
    monkeypatch.setattr(packs, "LOCK_MS", 50)
    hear(*(change(hear.token, 1, 410_000, n + 1, ts_ms=ms(0.9) + n) for n in range(6000)))
    with database.connect(database_url) as reader:
        reader.execute("select from book_events")
        assert packs.bring_up_to_date(conn, NOW).chunks == 0
    hear(change(hear.token, 1, 410_000, 1, ts_ms=ms(5)))

    assert packs.bring_up_to_date(conn, NOW).chunks == 1
