"""Verdicts against hand-made labels: precision and recall by class with Wilson intervals, and refused look-alikes.

`python -m benchmarks.equivalents.evaluation --texts DIR --json FILE` writes all of it; `--refused FILE` the refused
pairs alone as CSV, without the words of their texts. DIR holds the labelled markets'
texts as their exchanges' APIs send them, which are not ours to publish: `polymarket.json` by condition id,
`kalshi.json` by ticker (with `event_title`). docs/equivalents.md says where they can be had.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
from collections import Counter
from math import sqrt
from pathlib import Path
from typing import Any

import msgspec

from orchestration.equivalents.judge import RULES_VERSION, Verdict, judge
from orchestration.equivalents.questions import MarketText, from_kalshi, from_polymarket

LABELS = Path(__file__).parents[2] / "tests" / "orchestration" / "equivalents" / "labels.csv"
CLASSES = ("identical", "inverted", "subset", "related", "different", "unreadable")
REFUSED_COLUMNS = ("split", "polymarket", "kalshi", "similarity", "label", "verdict", "clause")
Z = 1.959963984540054  # standard deviations of a 95 % interval


class Label(msgspec.Struct, frozen=True):
    """A labelled pair: a row of labels.csv."""

    polymarket: str
    kalshi: str
    similarity: float
    stratum: str
    split: str
    label: str
    within: str
    clause: str
    polymarket_sha256: str
    kalshi_sha256: str


class Share(msgspec.Struct, frozen=True):
    """So many of so many, and the 95 % interval of their share; None of none."""

    hits: int
    of: int
    share: float | None
    low: float | None
    high: float | None


class Score(msgspec.Struct, frozen=True):
    """Precision and recall of one class."""

    precision: Share
    recall: Share


class Refused(msgspec.Struct, frozen=True):
    """A pair that was not called identical or inverted, and the clause that decided."""

    polymarket: str
    kalshi: str
    similarity: float
    label: str
    verdict: str
    clause: str | None
    detail: str


class Evaluation(msgspec.Struct, frozen=True):
    """Scores of one split. A subset counts as found only in the right direction."""

    split: str
    rules_version: int
    pairs: int
    missing: int  # pairs whose texts are not there, or are not those that were labelled
    scores: dict[str, Score]
    confusion: dict[str, dict[str, int]]  # label → verdict → pairs
    refused: list[Refused]


def wilson(hits: int, of: int) -> Share:
    """Return a share with its Wilson score interval at 95 %."""
    if of == 0:
        return Share(hits, of, None, None, None)
    share = hits / of
    scale = 1 + Z * Z / of
    middle = (share + Z * Z / (2 * of)) / scale
    half = Z * sqrt(share * (1 - share) / of + Z * Z / (4 * of * of)) / scale
    return Share(hits, of, share, max(0.0, middle - half), min(1.0, middle + half))


def labels(file: Path = LABELS) -> list[Label]:
    """Read the labelled pairs."""
    with file.open(newline="") as rows:
        return [msgspec.convert(row, Label, strict=False) for row in csv.DictReader(rows)]


def sha256(*parts: object) -> str:
    """Return the hash of a side's texts, as labels.csv has it."""
    return hashlib.sha256("\n".join(str(part or "") for part in parts).encode()).hexdigest()


def polymarket_text(market: dict[str, Any], identity: str) -> tuple[MarketText, str]:
    """Return a market of Polymarket, and the hash of its texts."""
    text = from_polymarket({**market, "conditionId": identity})
    return text, sha256(text.title, text.label, text.rules)


def kalshi_text(market: dict[str, Any], identity: str) -> tuple[MarketText, str]:
    """Return a market of Kalshi, and the hash of its texts."""
    text = from_kalshi({**market, "ticker": identity}, str(market.get("event_title") or ""))
    return text, sha256(text.title, text.label, text.rules, text.more_rules)


def judged(pairs: list[Label], texts: Path) -> tuple[list[tuple[Label, Verdict]], int]:
    """Judge each pair whose texts are in the folder and are those that were labelled; count the others."""
    ours = msgspec.json.decode((texts / "polymarket.json").read_bytes(), type=dict[str, dict[str, Any]])
    theirs = msgspec.json.decode((texts / "kalshi.json").read_bytes(), type=dict[str, dict[str, Any]])
    found, missing = [], 0
    for pair in pairs:
        if pair.polymarket not in ours or pair.kalshi not in theirs:
            missing += 1
            continue
        left, left_hash = polymarket_text(ours[pair.polymarket], pair.polymarket)
        right, right_hash = kalshi_text(theirs[pair.kalshi], pair.kalshi)
        if (left_hash, right_hash) != (pair.polymarket_sha256, pair.kalshi_sha256):
            missing += 1
            continue
        found.append((pair, judge(left, right)))
    return found, missing


def evaluate(split: str, found: list[tuple[Label, Verdict]], missing: int = 0) -> Evaluation:
    """Compare verdicts with labels."""
    confusion = {each: dict.fromkeys(CLASSES, 0) for each in CLASSES}
    hits: Counter[str] = Counter()
    refused = []
    for pair, verdict in found:
        confusion[pair.label][verdict.verdict] += 1
        if verdict.verdict == pair.label and _direction(pair, verdict):
            hits[pair.label] += 1
        if verdict.verdict not in {"identical", "inverted"}:
            refused.append(
                Refused(
                    pair.polymarket,
                    pair.kalshi,
                    pair.similarity,
                    pair.label,
                    verdict.verdict,
                    verdict.clause,
                    verdict.detail,
                )
            )
    scores = {
        each: Score(
            precision=wilson(hits[each], sum(row[each] for row in confusion.values())),
            recall=wilson(hits[each], sum(confusion[each].values())),
        )
        for each in CLASSES
    }
    refused.sort(key=lambda each: (-each.similarity, each.polymarket, each.kalshi))
    return Evaluation(split, RULES_VERSION, len(found), missing, scores, confusion, refused)


def _direction(pair: Label, verdict: Verdict) -> bool:
    return pair.label != "subset" or pair.within == {"left": "polymarket", "right": "kalshi"}.get(verdict.within or "")


def evaluations(texts: Path, file: Path = LABELS) -> list[Evaluation]:
    """Evaluate each split by itself."""
    pairs = labels(file)
    return [
        evaluate(split, *judged([pair for pair in pairs if pair.split == split], texts))
        for split in ("train", "held_out")
    ]


def write_refused(file: Path, found: list[Evaluation]) -> None:
    """Write each pair that was not called identical or inverted, with the clause that decided."""
    with file.open("w", newline="") as rows:
        writer = csv.writer(rows, lineterminator="\n")
        writer.writerow(REFUSED_COLUMNS)
        for each in found:
            for row in each.refused:
                writer.writerow((each.split, *(getattr(row, name) for name in REFUSED_COLUMNS[1:])))


def main() -> None:
    """Evaluate, and write all of it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=Path, required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--refused", type=Path)
    given = parser.parse_args()
    found = evaluations(given.texts)
    if given.refused is not None:
        write_refused(given.refused, found)
    given.json.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    for each in found:
        print(f"{each.split}: {each.pairs} pairs, {each.missing} without their texts")
        for name, score in each.scores.items():
            print(f"  {name:<11} precision {_said(score.precision):<32} recall {_said(score.recall)}")


def _said(share: Share) -> str:
    if share.share is None:
        return "- (0 of 0)"
    return f"{share.share:.3f} [{share.low:.3f}, {share.high:.3f}] ({share.hits} of {share.of})"


if __name__ == "__main__":
    main()
