"""Equivalents benchmark: candidates over two synthetic catalogues, and verdicts against labels if texts are given."""

from __future__ import annotations

import multiprocessing
import resource
import time
from typing import TYPE_CHECKING

from benchmarks.equivalents import catalogue, evaluation
from benchmarks.figures import Target, figure
from orchestration.equivalents.candidates import candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

    from benchmarks.figures import Figure
    from benchmarks.harness import Options

LEFT, RIGHT_SHARE = 20_000, 0.42  # of Polymarket's markets, Kalshi has 84,000 to its 200,000
PLANTED_SHARE = 0.05  # of the smaller catalogue
GOAL = Target("value", ">=", 0.99)


def run(options: Options, report: Callable[[str], None]) -> Iterator[Figure]:
    """Find candidates; judge the labelled pairs if their texts are there."""
    left = options.markets or LEFT
    right = options.live or round(left * RIGHT_SHARE)
    yield from _candidates(left, right, report)
    if options.texts is None:
        report("verdicts are not measured: --texts DIR says where the labelled texts are")
        return
    for each in evaluation.evaluations(options.texts):
        report(f"{each.split}: {each.pairs} pairs, {each.missing} without their texts")
        for name, score in each.scores.items():
            for what, share in (("precision", score.precision), ("recall", score.recall)):
                if share.share is not None:
                    bounds = {"low": share.low or 0.0, "high": share.high or 0.0, "hits": share.hits, "of": share.of}
                    yield figure(f"{each.split}: {what} of {name}", share.share, "", detail=bounds)
        identical = each.scores["identical"].precision
        if each.split == "held_out" and identical.low is not None:
            yield figure("held_out: precision of identical, lower bound", identical.low, "", target=GOAL)
        for refused in each.refused:
            report(
                f"{each.split}: {refused.polymarket[:10]}… {refused.kalshi}: {refused.label}, judged {refused.verdict} "
                f"by {refused.clause}: {refused.detail}"
            )


def _candidates(left: int, right: int, report: Callable[[str], None]) -> Iterator[Figure]:
    # In a process of its own: its greatest memory is the catalogues' and the index's.
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=measure, args=(theirs, left, right))
    process.start()
    theirs.close()
    try:
        seconds, megabytes, found, planted, pairs = ours.recv()
    finally:
        process.join()
    report(f"{left:,} by {right:,} markets: {pairs:,} candidates in {seconds:.1f} s of CPU, {megabytes:.0f} MB")
    size = f"{left:,} by {right:,}"
    yield figure(f"candidates, {size}: CPU time", seconds, "s", detail={"candidates": pairs})
    yield figure(f"candidates, {size}: memory", megabytes, "MB")
    yield figure(f"candidates, {size}: planted pairs found", found / planted, "", detail={"planted": planted})


def measure(answers: Connection, left: int, right: int) -> None:
    """Find the candidates of two synthetic catalogues; send seconds, megabytes, planted pairs found, and all, pairs."""
    planted = max(1, round(min(left, right) * PLANTED_SHARE))
    ours, theirs, pairs = catalogue.catalogues(left, right, planted)
    began = time.process_time()
    found, count = 0, 0
    same = dict(pairs)
    for each in candidates(ours, theirs):
        count += 1
        found += same.get(each.left) == each.right
    seconds = time.process_time() - began
    answers.send((seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, found, planted, count))
    answers.close()
