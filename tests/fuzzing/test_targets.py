"""Every parser of bytes from outside, on valid inputs and variants of them; `make fuzz` searches on, by coverage."""

import random

import pytest

from tests.fuzzing import seeds
from tests.fuzzing.targets import TARGETS

VARIANTS = 25


def test_every_target_has_valid_inputs(recorded):
    inputs = seeds.all_seeds(recorded)

    assert inputs.keys() == TARGETS.keys()
    assert all(inputs.values())


@pytest.mark.parametrize("name", TARGETS)
def test_a_parser_raises_nothing_that_its_callers_do_not_expect(name, recorded):
    inputs, dice = seeds.all_seeds(recorded)[name], random.Random(name)

    for data in inputs:
        TARGETS[name](data)
    for _ in range(VARIANTS):
        TARGETS[name](seeds.mutated(dice.choice(inputs), dice))
