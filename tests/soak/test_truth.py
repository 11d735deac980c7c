"""How the soaks compare what is stored with what was sent."""

from collections import Counter

from tests.soak.truth import SentEvents, compare, sent

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


def test_a_log_that_is_being_written_is_read_up_to_its_last_whole_line(tmp_path):
    line = '{"ts_ms": %d, "kind": "trade", "token": "7", "side": "BUY", "price": "0.5", "size": "1", "tx": "0xaa"}\n'
    (tmp_path / "log").write_text((line % 1_000) + (line % 2_000)[:40])

    events = sent(tmp_path / "log", from_ms=0, to_ms=9_000)

    assert [row[1] for row in events.rows["trades"]] == [1_000]
