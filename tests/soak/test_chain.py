"""Long-running chain tests: a thousand random histories, two hundred kills."""

from __future__ import annotations

import time

import pytest

from tests.orchestration.settlement import histories, killing

pytestmark = pytest.mark.soak

HISTORIES = 1_000
FIRST_SEED = 1_000  # others than those of the quick tests
KILLS, KILLS_PER_RUN = 200, 20


def test_a_thousand_random_histories_end_in_what_an_independent_reading_says(chain, faulty_rpcs, new_database):
    endpoints = faulty_rpcs(2)
    began = time.monotonic()
    wrong = {}
    for seed in range(FIRST_SEED, FIRST_SEED + HISTORIES):
        with new_database() as url:
            try:
                different = histories.play(seed, chain, endpoints, url)
            except Exception as fault:  # noqa: BLE001 (the seed is what is wanted)
                different = repr(fault)
        for endpoint in endpoints:
            endpoint.clear()
        if different:
            wrong[seed] = different
            print(f"seed {seed}: {str(different)[:500]}", flush=True)
        if (seed + 1) % 100 == 0:
            print(
                f"{seed + 1 - FIRST_SEED} histories, {len(wrong)} wrong, {time.monotonic() - began:.0f} s", flush=True
            )

    assert wrong == {}


def test_two_hundred_kills_lose_nothing_and_double_nothing(anvil, new_database):
    wrong = {}
    for seed in range(KILLS // KILLS_PER_RUN):
        with new_database() as url:
            if different := killing.kill_many(anvil, url, KILLS_PER_RUN, seed=1000 + seed):
                wrong[seed] = different
        print(f"{(seed + 1) * KILLS_PER_RUN} kills, {len(wrong)} wrong", flush=True)

    assert wrong == {}
