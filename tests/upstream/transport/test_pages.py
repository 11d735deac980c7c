import itertools

import pytest

from upstream.transport.errors import Incomplete
from upstream.transport.pages import MAX_EMPTY_PAGES, walk
from upstream.transport.pages import CursorPage as Page


def walked(pages, cursor=None):
    """Walk over these pages; return what was asked for, the items, and how it ended."""
    asked, items = [], []
    following = iter(pages)

    def page_after(after):
        asked.append(after)
        return next(following)

    try:
        for page in walk(page_after, cursor, str):
            items += page.items
    except Incomplete as end:
        return asked, items, str(end)
    return asked, items, None


def test_cursors_are_followed_to_the_page_without_one():
    pages = [Page([1, 2], [], 0, "a"), Page([], [], 3, "b"), Page([3], [], 0, None)]

    assert walked(pages) == ([None, "a", "b"], [1, 2, 3], None)
    assert walked(pages, "z")[0] == ["z", "a", "b"]


@pytest.mark.parametrize(
    ("pages", "items", "end"),
    [
        ([Page([1], [], 0, "a"), Page([2], [], 0, "a")], [1, 2], "cursor 'a' came again"),
        ([Page([1], [], 0, "a"), Page([1], [], 0, "b")], [1], "after cursor 'a' came before"),
        # The first page again, with a new item on top: what some exchanges answer to a garbage cursor.
        (
            [Page([1, 2, 3], [], 0, "a"), Page([4, 5], [], 0, "b"), Page([0, 1, 2], [], 0, "c")],
            [1, 2, 3, 4, 5],
            "'b'",
        ),
        ([Page([], [], 0, str(n)) for n in range(9)], [], f"{MAX_EMPTY_PAGES} empty pages"),
    ],
)
def test_pages_and_cursors_that_repeat_end_the_walk_loudly(pages, items, end):
    _, read, said = walked(pages)

    assert read == items
    assert end in said


def test_an_item_that_moved_to_a_later_page_does_not_end_the_walk():
    pages = [Page([1, 2, 3], [], 0, "a"), Page([4, 5, 3], [], 0, "b"), Page([1], [], 0, None)]

    assert walked(pages) == ([None, "a", "b"], [1, 2, 3, 4, 5, 3, 1], None)


def test_the_one_item_of_a_short_page_may_come_again():
    pages = [Page([1], [], 99, "a"), Page([1, 2, 3], [], 0, "b"), Page([4], [], 99, "c"), Page([4, 5, 6], [], 0, None)]

    assert walked(pages) == ([None, "a", "b", "c"], [1, 1, 2, 3, 4, 4, 5, 6], None)


def test_a_walk_without_an_end_is_given_up(monkeypatch):
    monkeypatch.setattr("upstream.transport.pages.MAX_PAGES", 5)

    assert walked(Page([n], [], 0, str(n)) for n in itertools.count())[2] == "more than 5 pages"
