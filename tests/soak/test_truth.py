"""How the soaks compare what is stored with what was sent."""

from collections import Counter

from tests.soak.truth import SentEvents, compare

PRINT = ("7", 1_450, 1, 500_000, 9, "0xaa")
LISTED = ("7", 1_000, 1, 500_000, 9, "0xaa")


def differences(*found, early=()):
    (difference,) = compare(
        SentEvents({"trades": Counter([PRINT])}, Counter(early)), {"trades": Counter(found)}
    ).values()
    return difference.lost.total(), difference.doubled.total()


def test_a_trade_may_be_stored_as_the_list_has_it_only_instead_of_its_early_print():
    assert differences(PRINT) == (0, 0)
    assert differences() == (1, 0)
    assert differences(PRINT, LISTED) == (0, 1)
    assert differences(LISTED) == (1, 1)

    assert differences(early=[PRINT]) == (0, 0)
    assert differences(LISTED, early=[PRINT]) == (0, 0)
    assert differences(PRINT, LISTED, early=[PRINT]) == (0, 1)
    assert differences(LISTED, LISTED, early=[PRINT]) == (0, 1)
