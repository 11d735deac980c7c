"""Recordings of Kalshi, in our own format, read from a folder.

A **capture** is a file of JSON lines, each with `at_ms` (the arrival, in Unix milliseconds), `connection` (a number, 1
if missing) and one of

- `frame`: what arrived, as the object or as its text;
- `sent`: a command, as the object: its `use_yes_price` says how the frames after it give prices of the NO side.

A **REST answer** is a JSON file: the body as it came, or an object with `path`, `body`, and `at_ms` if it is known. Its
keys say what it is about; for a book, whose body names no market, `path` does.

Any file may be gzipped. Files that are neither are listed with the reason, and so are lines that are not used.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from upstream.sandbox.tape.files import UnreadableError, as_text, load_json, moment, objects
from upstream.sandbox.tape.folder import Folder, UnplayableError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from upstream.sandbox.tape.files import File

LISTS = ("series", "events", "markets", "trades", "orderbooks")
SINGLE = {"event": "events", "market": "markets"}
PLAYED = {
    "orderbook_snapshot",
    "orderbook_delta",
    "trade",
    "ticker",
    "market_lifecycle_v2",
    "multivariate_market_lifecycle",
    "event_lifecycle",
    "event_fee_update",
}
MAX_CONNECTION = 1 << 31


class RecordedFrame(NamedTuple):
    """A message of a capture; `source` is the subscription that it came on."""

    at_ms: int
    order: int
    file: File
    row: int
    source: tuple[str, int, int]
    kind: str
    msg: dict[str, Any]
    yes: bool  # prices of the NO side are YES prices


@dataclass
class KalshiTape:
    """What a folder holds: REST's objects, and frames in the order of their arrival."""

    files: list[File]
    series: list[tuple[File, dict[str, Any]]] = field(default_factory=list)
    events: list[tuple[File, dict[str, Any]]] = field(default_factory=list)
    markets: list[tuple[File, dict[str, Any]]] = field(default_factory=list)
    trades: list[tuple[File, dict[str, Any]]] = field(default_factory=list)
    orderbooks: list[tuple[File, dict[str, Any]]] = field(default_factory=list)
    frames: list[RecordedFrame] = field(default_factory=list)

    def account(self) -> dict[str, Any]:
        """Return per file what was used of it, or why nothing was."""
        return {
            "files": [file.account() for file in self.files if file.rows],
            "unread": {file.name: file.why for file in self.files if not file.rows},
        }

    def lines(self) -> Iterator[str]:
        """Yield the account as lines of text."""
        for file in self.files:
            yield file.line() if file.rows else f"not read: {file.name}: {file.why}"


def read_recordings(folder: Path, progress: Callable[[str], None]) -> KalshiTape:
    """Read a folder; UnplayableError if there is nothing in it to play or list."""
    found = Folder(folder, progress)
    tape = KalshiTape(found.files)
    for file, data in found.unpacked():
        try:
            _read(tape, file, data)
        except UnreadableError as error:
            file.why = "; ".join(filter(None, [str(error), file.cut]))
    tape.frames.sort(key=lambda one: one[:2])
    if not (tape.markets or tape.frames):
        raise UnplayableError("\n".join([f"no recordings of Kalshi in {folder}", *tape.lines()]))
    return tape


def _read(tape: KalshiTape, file: File, data: bytes) -> None:
    text = as_text(data)
    whole = load_json(text)
    if isinstance(whole, dict) and not ("at_ms" in whole and ("frame" in whole or "sent" in whole)):
        _answer(tape, file, whole, text)
        return
    rows = whole if isinstance(whole, list) else [whole]
    if not any(isinstance(row, dict) and ("frame" in row or "sent" in row) for row in rows):
        raise UnreadableError("unknown kind: neither a capture nor an answer of REST")
    file.kind = "capture"
    _capture(tape, file, list(objects(file, rows, text)))


# --- REST ---


def _answer(tape: KalshiTape, file: File, whole: dict[str, Any], text: str) -> None:
    body, path = whole.get("body", whole), str(whole.get("path", "")).partition("?")[0]
    if not isinstance(body, dict):
        raise UnreadableError("unknown kind: the body is no object")
    if "orderbook_fp" in body:
        parts = path.strip("/").split("/")
        if len(parts) < 2 or parts[-1] != "orderbook":
            raise UnreadableError("a book of no market: `path` is missing")
        body = {"orderbooks": [{"ticker": parts[-2], "orderbook_fp": body["orderbook_fp"]}]}
    body = {SINGLE.get(name, name): [one] if name in SINGLE else one for name, one in body.items()}
    if isinstance(body.get("series"), dict):
        body["series"] = [body["series"]]
    found = [name for name in LISTS if isinstance(body.get(name), list)]
    if not found:
        raise UnreadableError(f"unknown kind: an answer with {', '.join(sorted(body))[:200] or 'nothing'}")
    file.kind = f"answer of REST: {', '.join(found)}"
    for name in found:
        kept: list[tuple[File, dict[str, Any]]] = getattr(tape, name)
        for _, row in objects(file, body[name], text):
            inside = row.pop("markets", None) if name == "events" else None
            kept.append((file, row))
            if isinstance(inside, list):
                tape.markets += [(file, one) for _, one in objects(file, inside, text)]


# --- Captures ---


def _capture(tape: KalshiTape, file: File, rows: list[tuple[int, dict[str, Any]]]) -> None:
    yes: dict[int, bool] = {}
    last_ms = 0
    for row, line in rows:
        try:
            at_ms, connection = moment(line.get("at_ms")), _connection(line.get("connection", 1))
            if "sent" in line:
                yes[connection] = _uses_yes_price(line["sent"], yes=yes.get(connection, False))
                file.used += 1
                continue
            frame = _frame(line.get("frame"))
        except ValueError as error:
            file.leave(str(error), row)
            continue
        kind, msg = frame.get("type"), frame.get("msg")
        if not isinstance(kind, str):
            file.leave("malformed frame: no type", row)
            continue
        if kind not in PLAYED or not isinstance(msg, dict):
            file.leave("an answer to a command", row)
            continue
        last_ms = max(last_ms, at_ms)  # an arrival is never before the one above it
        sid = frame.get("sid")
        source = file.name, connection, sid if isinstance(sid, int) else 0
        known = yes.get(connection, False)
        tape.frames.append(RecordedFrame(last_ms, len(tape.frames), file, row, source, kind, msg, known))


def _connection(value: Any) -> int:
    if type(value) is not int or not 0 <= value < MAX_CONNECTION:
        raise ValueError("malformed connection")
    return value


def _frame(value: Any) -> dict[str, Any]:
    try:
        found = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        raise ValueError("malformed frame: not JSON") from None
    if not isinstance(found, dict):
        raise ValueError("malformed frame: not an object")  # noqa: TRY004 - the value is a file's
    return found


def _uses_yes_price(command: Any, *, yes: bool) -> bool:
    params = command.get("params") if isinstance(command, dict) else None
    if not isinstance(params, dict) or command.get("cmd") != "subscribe":
        return yes
    return params.get("use_yes_price") is True
