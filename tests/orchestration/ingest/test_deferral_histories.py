"""After a takeover, a standby that left frames unparsed has stored and streamed what parsing each at once gives."""

import time

import pytest

from sql import database
from tests.effort import examples
from tests.orchestration.ingest.deferral_histories import ENOUGH, differences, play


@pytest.fixture(scope="module")
def database_url_of_file(new_database):
    with new_database() as url:
        yield url


@pytest.mark.parametrize("seed", range(examples(6, 48)))
def test_after_a_random_history_the_same_is_stored_and_streamed_as_by_parsing_at_once(database_url_of_file, seed):
    with database.connect(database_url_of_file, autocommit=True) as conn:
        most = 20_000 if seed % 4 == 3 else ENOUGH  # bytes of frames: beyond it they are parsed
        began_ms = int(time.time()) * 1000
        at_once = play(database_url_of_file, conn, seed, began_ms, defers=False)
        deferred = play(database_url_of_file, conn, seed, began_ms, defers=True, max_kept_bytes=most)

    assert at_once["streamed"]
    assert differences(at_once, deferred) == {}
