"""Stream messages in few bytes: a block is what one transaction published, compressed as a whole.

Numbers are not stored: a block has its first one, and its messages follow without gaps. Nor are the two long ids of the
feed's messages, 143 bytes that do not compress: they are stored as our key of the market and the outcome's index, with
placeholders in the text, and put back when read. Type, market and wallet are beside the texts, so that no filter needs
to parse JSON.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import zstandard
from msgspec import DecodeError, Struct, msgpack

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_MESSAGES = 2_000  # of a block, as the table and its queries have it: a reader unpacks at most so many for one
MAX_BYTES = 1 << 20  # of a block's texts, unless a single one is longer
MAX_UNPACKED_BYTES = 256 << 20  # what claims to be longer is damaged
MARKET, TOKEN = "~", "^"  # stand for the ids of market and token: the texts of the feed's messages have neither
VERSION = b"\x01"
LEVEL = 1  # on such texts, level 3 takes half as long again and saves nothing

_SEPARATOR = b"\0"  # JSON has none


class BlockError(ValueError):
    """A block cannot be read: it is damaged, or a later release wrote it."""


class StreamMessage(Struct, gc=False):
    """A message, encoded except for its sequence number."""

    type: str
    ts: int
    """Unix milliseconds, as in the message."""
    market: str | int | None
    """The condition ID; or our key, if the text has placeholders."""
    rest: bytes
    """The JSON after type and sequence number."""
    wallet: bytes | None = None
    """Sent only to subscribers who follow this wallet."""
    outcome: int | None = None
    """If the text has placeholders."""


Head = tuple[str, str | int | None, int | None, bytes | None]
"""What several messages of a block have in common: type, market, outcome, wallet."""


class Block(Struct, array_like=True):
    """The messages of a block, unpacked: the head's index and the text of each."""

    heads: list[Head]
    indexes: list[int]
    texts: bytes

    def rests(self) -> list[bytes]:
        """Return the text of each message."""
        return self.texts.split(_SEPARATOR)


_decoder = msgpack.Decoder(Block)
_encoder = msgpack.Encoder()


def split(messages: Sequence[StreamMessage]) -> Iterator[Sequence[StreamMessage]]:
    """Split messages into blocks."""
    start = size = 0
    for at, message in enumerate(messages):
        size += len(message.rest)
        if at - start == MAX_MESSAGES or (size > MAX_BYTES and at > start):
            yield messages[start:at]
            start, size = at, len(message.rest)
    if messages:
        yield messages[start:]


def pack(messages: Sequence[StreamMessage]) -> bytes:
    """Pack the messages of a block."""
    heads: dict[Head, int] = {}
    indexes = [heads.setdefault((m.type, m.market, m.outcome, m.wallet), len(heads)) for m in messages]
    data = _encoder.encode((list(heads), indexes, _SEPARATOR.join([message.rest for message in messages])))
    return VERSION + zstandard.ZstdCompressor(level=LEVEL, write_checksum=True).compress(data)


def unpack(data: bytes, messages: int) -> Block:
    """Unpack a block of so many messages."""
    if data[:1] != VERSION:
        raise BlockError(f"a block of version {data[:1].hex()}; this release reads {VERSION.hex()}")
    try:
        frame = data[1:]
        size = zstandard.frame_content_size(frame)
        if not 0 <= size <= MAX_UNPACKED_BYTES:
            raise BlockError(f"a block of {size} bytes")
        block = _decoder.decode(zstandard.ZstdDecompressor().decompress(frame))
    except (zstandard.ZstdError, DecodeError) as error:
        raise BlockError(str(error)) from error
    found = block.texts.count(_SEPARATOR) + 1
    if not messages == found == len(block.indexes) or not 0 <= max(block.indexes) < len(block.heads):
        raise BlockError(f"a block of {found} messages instead of {messages}")
    return block
