"""Receiver that records when each webhook arrived: `python -m benchmarks.webhooks.receiver FILE` prints its port.

It ends on SIGTERM.
"""

from __future__ import annotations

import array
import asyncio
import re
import signal
import sys
import time
from pathlib import Path

LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)
SEQ = re.compile(rb'"seq":(\d+)')
ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


async def main() -> bytes:
    """Serve until SIGTERM; return pairs of an event's number and the monotonic nanosecond it arrived."""
    noted = array.array("q")
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                found = LENGTH.search(head)
                body = await reader.readexactly(int(found[1]) if found else 0)
                seq = SEQ.search(body)
                noted.extend((int(seq[1]) if seq else 0, time.monotonic_ns()))
                writer.write(ANSWER)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    print(server.sockets[0].getsockname()[1], flush=True)
    await over.wait()
    return noted.tobytes()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(asyncio.run(main()))
