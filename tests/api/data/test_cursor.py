"""Cursors whose secret is rotated."""

from __future__ import annotations

import msgspec
import pytest

from api.data.cursor import FETCH_EVERY_S, FETCH_PAUSE_S, Cursors
from api.errors import Problem


class Position(msgspec.Struct, array_like=True):
    at: int


class Process:
    """A process's cursors, the secrets that it would be told, and how often it asked."""

    def __init__(self, *secrets: bytes):
        self.secrets, self.asked, self.now = list(secrets), 0, 0.0
        self.cursors = Cursors(self.fetch, lambda: self.now)

    def fetch(self):
        self.asked += 1
        return list(self.secrets)

    def read(self, text):
        return self.cursors.read(text, Position).at


def test_the_newest_secret_signs_and_any_verifies():
    before, between = Process(b"old"), Process(b"new", b"old")
    old, new = before.cursors.write(Position(1)), between.cursors.write(Position(2))

    after = Process(b"new")

    assert old != between.cursors.write(Position(1))
    assert (between.read(old), between.read(new), after.read(new)) == (1, 2, 2)
    with pytest.raises(Problem, match="400"):
        after.read(old)


def test_a_cursor_of_a_process_that_knows_a_newer_secret_is_read_at_once():
    process = Process(b"old")
    process.cursors.write(Position(1))
    process.secrets.insert(0, b"new")
    process.now += FETCH_PAUSE_S

    assert process.read(Process(b"new").cursors.write(Position(2))) == 2
    assert process.asked == 2


def test_who_forges_cursors_does_not_have_the_secrets_fetched_each_time():
    process = Process(b"ours")
    forged = Process(b"theirs").cursors.write(Position(1))

    for _ in range(5):
        with pytest.raises(Problem):
            process.read(forged)

    assert process.asked == 1
    process.now += FETCH_EVERY_S
    process.cursors.write(Position(1))
    assert process.asked == 2
