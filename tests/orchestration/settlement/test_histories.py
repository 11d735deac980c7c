"""Whatever the chain and its endpoints do: in the end the tables equal an independent reading."""

from __future__ import annotations

import pytest

from tests.effort import examples
from tests.orchestration.settlement import histories


@pytest.mark.parametrize("seed", range(examples(8, 50)))
def test_after_a_random_history_the_tables_are_what_an_independent_reading_says(chain, faulty_rpcs, database_url, seed):
    assert histories.play(seed, chain, faulty_rpcs(2), database_url) == {}
