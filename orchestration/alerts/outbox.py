"""One receiver's outbox: messages are batched, so that many failures become few messages, and kept until accepted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import msgspec

from orchestration.alerts.standing import Note

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_LINES = 20  # max lines of a message
RETRY_S = 30.0
MAX_RETRY_S = 900.0


class AlertMessage(msgspec.Struct, frozen=True):
    """One alert message: text for people, and the same content as fields for programs."""

    title: str
    text: str
    notes: list[Note]


class Outbox(msgspec.Struct):
    """Notes that a receiver has not been sent yet."""

    pending: dict[str, Note] = {}
    sent_at: float = 0.0
    again_at: float = 0.0
    refused: int = 0

    def put(self, notes: Iterable[Note]) -> None:
        """Add notes; a failure that ended before it was sent is dropped."""
        for note in notes:
            waiting = self.pending.pop(note.key, None)
            if note.kind == "over" and waiting is not None and waiting.kind == "problem":
                continue
            if note.kind == "still" and waiting is not None and waiting.kind == "problem":
                note = msgspec.structs.replace(note, kind="problem")  # noqa: PLW2901
            self.pending[note.key] = note

    def due(self, now: float, *, pause_s: float) -> AlertMessage | None:
        """Return the message to send now, if any."""
        if not self.pending or now < self.again_at or now < self.sent_at + pause_s:
            return None
        return message(list(self.pending.values()))

    def sent(self, now: float) -> None:
        """Record that the message was accepted."""
        self.pending, self.sent_at, self.refused = {}, now, 0

    def failed(self, now: float) -> None:
        """Record that the message was not accepted: it is retried with increasing delays."""
        self.again_at = now + min(MAX_RETRY_S, RETRY_S * 2**self.refused)
        self.refused = min(self.refused + 1, 10)


def message(notes: list[Note]) -> AlertMessage:
    """Format notes as a message, the most severe first."""
    order = {("problem", "error"): 0, ("problem", "warn"): 1, ("still", "error"): 2, ("still", "warn"): 3}
    notes = sorted(notes, key=lambda note: (order.get((note.kind, note.severity), 4), note.key))
    counted = {
        "problem": ("new problem", "new problems"),
        "still": ("still there", "still there"),
        "over": ("over", "over"),
    }
    parts = [
        f"{count} {one if count == 1 else many}"
        for kind, (one, many) in counted.items()
        if (count := sum(note.kind == kind for note in notes))
    ]
    lines = [_line(note) for note in notes[:MAX_LINES]]
    if len(notes) > MAX_LINES:
        lines.append(f"and {len(notes) - MAX_LINES} more")
    return AlertMessage("Presage: " + ", ".join(parts), "\n".join(lines), notes)


def _line(note: Note) -> str:
    since = datetime.fromtimestamp(note.since, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    if note.kind == "over":
        return f"OVER {note.key}: {note.said}, after it began at {since}"
    return f"{note.severity.upper()} {note.key}: {note.said} (since {since})"
