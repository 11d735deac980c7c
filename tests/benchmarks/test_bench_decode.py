"""`presage bench decode` at a small size: both decoders read the same from the same logs."""

from __future__ import annotations

import sys

import msgspec

from benchmarks.chain import decode as bench
from benchmarks.chain import logs as decode_logs
from benchmarks.harness import Options
from upstream.chain.contracts import POLYGON
from upstream.chain.decode import decode
from upstream.chain.wire import RawLog


def test_our_decoder_and_web3_read_the_same():
    events, format_log = bench.rivals(), bench.web3().method_formatters.log_entry_formatter

    for logs in (decode_logs.fills(60), decode_logs.mixed(200)):
        raw = msgspec.convert(logs, list[RawLog])
        ours, theirs = bench.both_read(raw, [format_log(log) for log in logs], events)

        assert ours == theirs
        assert len(ours) > 0


def test_importing_web3_does_not_let_recursion_go_deeper_than_the_stack():
    bench.web3()

    assert sys.getrecursionlimit() < 10_000


def test_the_mix_has_a_row_of_the_taker_s_for_each_match_and_knows_whose_redemptions_are():
    made = decode(msgspec.convert(decode_logs.mixed(1000), list[RawLog]), POLYGON)

    assert made.counts["matches"] == int(made.fills.counted.sum()) > 50
    assert made.counts["inner_steps"] > 10
    assert made.counts["unattributed"] == made.counts["refused"] == 0
    assert {entry.kind for entry in made.ledger} == {"redeem"}
    assert all(entry.wallet is not None for entry in made.ledger)


def test_it_measures_fills_the_mix_and_the_way_from_the_answer(monkeypatch):
    monkeypatch.setattr(bench, "LOGS", 300)
    monkeypatch.setattr(bench, "PASSES", 3)

    figures = list(bench.run(Options(repetitions=1), lambda _: None))

    assert [figure.target for figure in figures] == ["ratio >= 40"] * 3
    assert all(figure.value > 0 and figure.rival_value for figure in figures)
