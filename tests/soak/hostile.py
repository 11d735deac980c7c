"""Mischief in a process of its own: `python -m tests.soak.hostile PORT PATH`, until its standard input ends."""

from __future__ import annotations

import contextlib
import json
import sys
import threading

from tests.api.raw import CONTINUATION, PING, Raw, framed

PAUSE_S = 0.2  # between two times of one kind
KINDS = ("large_frame", "compressed", "fragments", "no_text", "pings", "wishes")
LARGE = framed(b"", length=8 << 20) + b"x" * (8 << 20)
FRAGMENTS = framed(b" ", fin=False) + framed(b"", CONTINUATION, fin=False) * 5000
NO_TEXT = framed(b"\xff" * 60_000)


class Hostile(threading.Thread):
    """One kind of mischief, over and over."""

    def __init__(self, name: str, address: tuple[str, int], path: str) -> None:
        super().__init__(name=name, daemon=True)
        self.address, self.path = address, path
        self.enough = threading.Event()
        self.times = 0

    def run(self) -> None:
        mischief = getattr(self, self.name)
        while not self.enough.wait(PAUSE_S):
            with contextlib.suppress(OSError, AssertionError):
                mischief()
                self.times += 1

    def opened(self) -> Raw:
        return Raw(self.address, self.path)

    def large_frame(self) -> None:
        with self.opened() as raw:
            raw.send(LARGE)

    def compressed(self) -> None:
        with self.opened() as raw:
            raw.send(framed(b"x", flags=0x40))
            raw.close_code()

    def fragments(self) -> None:
        with self.opened() as raw:
            raw.send(FRAGMENTS)
            raw.close_code()

    def no_text(self) -> None:
        with self.opened() as raw:
            raw.send(NO_TEXT)
            raw.close_code()

    def pings(self) -> None:
        with self.opened() as raw:
            raw.send(framed(b"p" * 125, PING) * 2000)

    def wishes(self) -> None:
        with self.opened() as raw:
            raw.send(framed(b'{"action":"subscribe","resume_from":0}') * 500)
            self.enough.wait(1)


def main(port: int, path: str) -> None:
    hostile = [Hostile(kind, ("127.0.0.1", port), path) for kind in KINDS]
    for each in hostile:
        each.start()
    sys.stdin.read()
    for each in hostile:
        each.enough.set()
    for each in hostile:
        each.join(timeout=10)
    print(json.dumps({each.name: each.times for each in hostile}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
