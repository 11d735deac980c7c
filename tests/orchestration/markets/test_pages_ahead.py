"""Pages of the catalogue are fetched ahead, while the current one is stored."""

import threading

import pytest

from orchestration.markets import discovery
from upstream.transport.errors import Rejected


def test_the_next_page_is_fetched_while_one_is_stored():
    requested = [threading.Event() for _ in range(3)]

    def pages():
        for nth, event in enumerate(requested):
            event.set()
            yield nth

    walk = discovery._ahead(pages())
    assert next(walk) == 0
    assert requested[1].wait(timeout=30)
    assert list(walk) == [1, 2]


def test_a_fault_of_a_page_fetched_ahead_is_raised_where_the_page_is_due():
    def pages():
        yield 1
        raise Rejected("cursor", 400)

    walk = discovery._ahead(pages())
    assert next(walk) == 1
    with pytest.raises(Rejected):
        next(walk)
