"""Gaps between a market's listing and the moment its books are synced."""

import datetime as dt
import json

import pytest

from orchestration.ingest.gaps import starts
from orchestration.ingest.gaps.starts import LISTED, READING, StartGaps
from orchestration.ingest.normalizer import Normalizer
from orchestration.ingest.storage.rows import Token
from tests.factories import insert
from tests.orchestration.ingest.builders import book

BEGAN = dt.datetime.now(dt.UTC).replace(microsecond=0) - dt.timedelta(hours=2)
BEGAN_MS = int(BEGAN.timestamp() * 1000)
MINUTE = dt.timedelta(minutes=1)


class LeaderWorld:
    """A leader that has followed the catalogue so far."""

    def __init__(self, conn, add_market, run_id="me"):
        self.conn, self.add_market = conn, add_market
        self.normalizer = Normalizer()
        self.starts = StartGaps(run_id, self.normalizer)
        self.since_ms = BEGAN_MS

    def update(self, *, written_ms=None):
        written_ms = self.normalizer.exchange.local_ms() + 1 if written_ms is None else written_ms
        self.starts.update(self.conn, (0, 0), since_ms=self.since_ms, written_ms=written_ms)

    def follow(self, market):
        tokens = [
            Token(token_id, market["market_id"], market["market_key"], outcome)
            for outcome, token_id in enumerate(market["token_ids"])
        ]
        for token in tokens:
            self.normalizer.follow(token)
        return tokens

    def sync_books(self, market, at):
        for token in self.follow(market):
            self.normalizer.apply([book(token, [(400_000, 1)], [(600_000, 1)], ts_ms=int(at.timestamp() * 1000))])

    def gaps(self):
        rows = self.conn.execute(
            "select kind, market_key, cause, from_ts, to_ts from coverage_gaps order by market_key, from_ts, kind"
        )
        return rows.fetchall()


@pytest.fixture
def world(database_url, conn, add_market):
    made = LeaderWorld(conn, add_market)
    made.update()
    return made


def test_a_new_market_is_a_gap_from_its_listing_until_its_books_stand(world):
    market = world.add_market(created_at=BEGAN + 5 * MINUTE)
    world.update()
    key, listed = market["market_key"], BEGAN + 5 * MINUTE
    assert world.gaps() == [(kind, key, LISTED, listed, None) for kind in ("books", "trades")]

    world.follow(market)
    world.update()
    assert {gap[4] for gap in world.gaps()} == {None}, "it is followed, and no book has come"

    world.sync_books(market, BEGAN + 9 * MINUTE)
    world.update()
    assert [gap[:4] for gap in world.gaps()] == [(kind, key, LISTED, listed) for kind in ("books", "trades")]
    assert all(gap[4] > listed for gap in world.gaps())


def test_a_market_whose_first_book_is_that_of_its_listing_is_no_gap(world):
    market = world.add_market(created_at=BEGAN + MINUTE)
    world.sync_books(market, BEGAN + MINUTE)
    world.update()

    later = world.add_market(created_at=BEGAN + MINUTE)
    world.update()
    world.sync_books(later, BEGAN + MINUTE)
    world.update()

    assert world.gaps() == []


def test_what_was_received_since_the_listing_is_a_gap_until_it_is_committed(world):
    market = world.add_market(created_at=BEGAN + MINUTE)
    received_ms = world.normalizer.exchange.local_ms()
    world.sync_books(market, BEGAN + MINUTE)
    world.update(written_ms=received_ms)
    assert [gap[1:] for gap in world.gaps()] == [(market["market_key"], LISTED, BEGAN + MINUTE, None)] * 2

    world.update()
    assert world.gaps() == []


@pytest.mark.parametrize("leaves", [False, True])
def test_a_start_ends_when_its_books_were_synced_however_late_they_are_committed(world, leaves):
    market = world.add_market(created_at=BEGAN + MINUTE)
    received_ms = world.normalizer.exchange.local_ms()
    world.sync_books(market, BEGAN + 2 * MINUTE)
    world.update(written_ms=received_ms)
    exchange, states = world.normalizer.exchange, world.normalizer.states.values()
    for state in states:
        state.complete_since_ms -= 60_000
    if leaves:
        world.starts.close(world.conn, written_ms=received_ms)
    else:
        world.update(written_ms=received_ms)

    synced_ms = max(exchange.to_exchange_ms(state.complete_since_ms) for state in states)
    assert [int(gap[4].timestamp() * 1000) for gap in world.gaps()] == [synced_ms] * 2


def test_a_start_ends_no_earlier_than_the_book_it_ends_with(world):
    ahead = dt.datetime.now(dt.UTC).replace(microsecond=0) + MINUTE  # of our estimate of the exchange's time
    seen_at_once, seen_later = (world.add_market(created_at=BEGAN + MINUTE) for _ in range(2))
    world.sync_books(seen_at_once, ahead)
    world.update()
    world.sync_books(seen_later, ahead)
    world.update()

    assert {gap[4] for gap in world.gaps()} == {ahead}


def test_what_was_announced_begins_with_its_announcement(world):
    market = world.add_market(created_at=BEGAN + MINUTE)
    announced = BEGAN + 30 * MINUTE
    world.starts.announce(market["market_id"], int(announced.timestamp() * 1000))
    world.update()

    assert {gap[3] for gap in world.gaps()} == {announced}


def test_a_market_from_before_recording_is_missing_since_then(world):
    insert(world.conn, "settings", {"name": "recorded_since", "value": json.dumps(BEGAN_MS + 60_000)})
    market = world.add_market(created_at=BEGAN - dt.timedelta(days=400))
    world.update()

    assert {gap[1:4] for gap in world.gaps()} == {(market["market_key"], LISTED, BEGAN + MINUTE)}


def test_a_market_that_was_over_before_it_was_known_is_a_gap_of_its_whole_life(world):
    world.add_market(status="CLOSED", created_at=BEGAN - 9 * MINUTE, closed_at=BEGAN - MINUTE)  # before recording
    market = world.add_market(status="RESOLVED", created_at=BEGAN + MINUTE, closed_at=BEGAN + 6 * MINUTE)
    world.update()

    life = (BEGAN + MINUTE, BEGAN + 6 * MINUTE)
    assert [gap[:2] + gap[3:] for gap in world.gaps()] == [
        (kind, market["market_key"], *life) for kind in ("books", "trades")
    ]


def test_a_life_within_a_known_gap_is_no_gap_of_its_own(world):
    common = {"cause": "no feed running", "from_ts": BEGAN, "to_ts": BEGAN + 30 * MINUTE}
    insert(world.conn, "coverage_gaps", {"kind": "books", **common})
    insert(world.conn, "coverage_gaps", {"kind": "trades", **common, "filled_at": BEGAN + 31 * MINUTE})
    market = world.add_market(status="CLOSED", created_at=BEGAN + MINUTE, closed_at=BEGAN + 6 * MINUTE)
    world.update()

    assert [gap[0] for gap in world.gaps() if gap[1] == market["market_key"]] == ["trades"], "the trades gap is filled"


def test_a_market_that_opens_again_is_missing_since_it_had_closed(world):
    market = world.add_market(status="CLOSED", created_at=BEGAN - dt.timedelta(days=9), closed_at=BEGAN - MINUTE)
    world.update()
    key = market["market_key"]
    for ts, was, is_now in ((BEGAN + MINUTE, "ACTIVE", "CLOSED"), (BEGAN + 9 * MINUTE, "CLOSED", "ACTIVE")):
        row = {"market_key": key, "ts": ts, "from_status": was, "to_status": is_now, "cause": "discovered"}
        insert(world.conn, "market_status_changes", row)
    world.conn.execute("update markets set status = 'ACTIVE', closed_at = null")
    world.update()

    assert {gap[1:4] for gap in world.gaps()} == {(key, LISTED, BEGAN + MINUTE)}


def test_a_market_that_comes_to_the_order_book_later_is_a_gap_too(world):
    market = world.add_market(created_at=BEGAN + MINUTE, order_book=False)
    world.update()
    assert world.gaps() == []

    world.conn.execute("update markets set order_book = true")
    world.follow(market)
    world.starts.begun.add(market["market_key"])
    world.update()
    assert {gap[1] for gap in world.gaps()} == {market["market_key"]}


def test_the_next_leader_goes_on_where_the_last_one_was(world):
    world.add_market(created_at=BEGAN + MINUTE)
    world.update()
    market = world.add_market(created_at=BEGAN + 2 * MINUTE)
    successor = LeaderWorld(world.conn, world.add_market, "another")
    successor.update()
    successor.update()

    assert [gap[1] for gap in successor.gaps()[2:]] == [market["market_key"]] * 2


def test_while_the_catalogue_is_first_read_there_is_one_gap_of_all(world):
    insert(world.conn, "settings", {"name": "discovery", "value": {"tried_at": "2026-01-01T00:00:00Z"}})
    began = dt.datetime.now(dt.UTC)  # so that the gap of all is a young one, which hides none of its markets' own
    world.since_ms = int(began.timestamp() * 1000)
    markets = [world.add_market(created_at=BEGAN) for _ in range(3)]
    world.update()
    world.update()
    assert [gap[:3] for gap in world.gaps()] == [("books", None, READING), ("trades", None, READING)]

    world.conn.execute("update settings set value = value || '{\"full_at\": \"2026-01-01\"}' where name = 'discovery'")
    markets.append(world.add_market(created_at=BEGAN))  # found by the scan, and seen here after its end
    for market in markets[1:]:
        world.sync_books(market, began + MINUTE)
        world.starts.begun.add(market["market_key"])
    world.update()
    assert {gap[4] for gap in world.gaps()} == {None}, "one is not followed yet"

    world.sync_books(markets[0], began + MINUTE)
    world.starts.begun.add(markets[0]["market_key"])
    world.update()
    assert len(world.gaps()) == 2, "none has one of its own besides"
    assert all(gap[4] is not None for gap in world.gaps())


def test_a_run_that_leads_again_after_another_saw_the_end_of_the_first_read_opens_gaps_of_new_markets(world):
    insert(world.conn, "settings", {"name": "discovery", "value": {"tried_at": "2026-01-01T00:00:00Z"}})
    world.sync_books(world.add_market(created_at=BEGAN), BEGAN + MINUTE)
    world.update()
    world.conn.execute("update settings set value = value || '{\"full_at\": \"2026-01-01\"}' where name = 'discovery'")
    LeaderWorld(world.conn, world.add_market, "another").update()

    listed = BEGAN + 9 * MINUTE
    market = world.add_market(created_at=listed)
    world.since_ms = BEGAN_MS + 60_000
    world.update()

    assert [gap[2:4] for gap in world.gaps() if gap[1] == market["market_key"]] == [(LISTED, listed)] * 2
    assert all(gap[4] is not None for gap in world.gaps() if gap[2] == READING)


def test_very_many_at_once_are_one_gap_of_all(world, monkeypatch):
    monkeypatch.setattr(starts, "MAX_MARKETS_PER_LOSS", 2)
    markets = [world.add_market(created_at=BEGAN + n * MINUTE) for n in (3, 1, 2)]
    world.update()
    assert [gap[1:] for gap in world.gaps()] == [(None, LISTED, BEGAN + MINUTE, None)] * 2

    for market in markets:
        world.sync_books(market, BEGAN + 4 * MINUTE)
    world.update()
    assert all(gap[4] is not None for gap in world.gaps())


def test_what_is_never_followed_keeps_no_gap_open(world, monkeypatch):
    world.add_market(created_at=BEGAN + MINUTE)
    world.update()
    monkeypatch.setattr(starts, "NEVER_FOLLOWED_S", 0.0)
    world.update()

    assert all(gap[4] is not None for gap in world.gaps())
