"""RFC 6455, section by section: framing, fragmentation, control frames, UTF-8, closing, limits.

What the Autobahn suite covers for a server without extensions; the echo is our `ping` wish, answered by `pong`, or the
error that quotes nothing back.
"""

from __future__ import annotations

import random
import socket
import time

import pytest

from tests.api.raw import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PING_COMMAND,
    PONG,
    TEXT,
    Raw,
    closing,
    framed,
    random_mask,
)


@pytest.fixture
def raw(server, server_key):
    with Raw(("127.0.0.1", server.port), f"/stream?api_key={server_key}") as connection:
        yield connection


def padded(size: int) -> bytes:
    """The ping command, padded with white space to `size` bytes."""
    return b" " * (size - len(PING_COMMAND)) + PING_COMMAND


def alive(raw: Raw) -> bool:
    raw.send(framed(PING_COMMAND))
    return raw.said()["type"] == "pong"


# --- 4.2.2 The server's answer; 5.1 a server does not mask


def test_the_answer_to_the_handshake_proves_that_the_key_was_read(raw):
    fields = {name.lower(): value for name, _, value in (line.partition(b": ") for line in raw.head.split(b"\r\n")[1:])}

    assert fields[b"upgrade"].lower() == b"websocket"
    assert fields[b"connection"].lower() == b"upgrade"
    assert fields[b"sec-websocket-accept"] == b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert b"sec-websocket-extensions" not in fields
    assert b"sec-websocket-protocol" not in fields


def test_what_the_server_sends_is_whole_unmasked_and_without_reserved_bits(raw):
    raw.send(framed(PING_COMMAND), framed(b"x", PING))

    frames = [raw.until(TEXT, PONG), raw.until(TEXT, PONG)]

    assert [(frame.fin, frame.flags, frame.masked) for frame in frames] == [(True, 0, False)] * 2


# --- 5.2 Base framing: lengths


@pytest.mark.parametrize("size", [17, 125, 126, 127, 128, 65_535, 65_536])
def test_a_message_of_any_length_up_to_the_limit_is_read(raw, size):
    raw.send(framed(padded(size)))

    assert raw.said()["type"] == "pong"


@pytest.mark.parametrize("size", [17, 126, 4096])
def test_a_message_that_comes_in_small_pieces_is_read(raw, size):
    raw.dribble(framed(padded(size)), 1 if size < 1000 else 7)

    assert raw.said()["type"] == "pong"


def test_several_frames_in_one_packet_are_all_read(raw):
    raw.send(framed(PING_COMMAND) * 20)

    assert [raw.said()["type"] for _ in range(20)] == ["pong"] * 20


@pytest.mark.parametrize(("size", "width"), [(17, 2), (125, 2), (17, 8), (126, 8), (65_535, 8)])
def test_a_length_that_is_not_written_in_the_shortest_way_is_an_error(raw, size, width):
    raw.send(framed(padded(size), width=width))

    assert raw.close_code() == 1002


def test_a_length_with_its_highest_bit_set_is_an_error(raw):
    raw.send(framed(b"", width=8, length=1 << 63))

    assert raw.close_code() == 1002


@pytest.mark.parametrize("size", [65_537, 1 << 20, 1 << 40])
def test_a_frame_beyond_the_limit_is_refused_by_its_header_alone(raw, size):
    raw.send(framed(b"", length=size))

    assert raw.close_code() == 1009


# --- 5.2 Reserved bits and opcodes


@pytest.mark.parametrize("flags", [0x10, 0x20, 0x30, 0x40, 0x50, 0x60, 0x70])
@pytest.mark.parametrize("opcode", [TEXT, PING, CLOSE])
def test_reserved_bits_are_an_error_also_that_of_compression(raw, flags, opcode):
    raw.send(framed(b"", opcode, flags=flags))

    assert raw.close_code() == 1002


@pytest.mark.parametrize("opcode", [3, 4, 5, 6, 7, 11, 12, 13, 14, 15])
@pytest.mark.parametrize("payload", [b"", b"x"])
def test_reserved_opcodes_are_an_error(raw, opcode, payload):
    raw.send(framed(PING_COMMAND), framed(payload, opcode))

    assert raw.said()["type"] == "pong"
    assert raw.close_code() == 1002


@pytest.mark.parametrize("fin", [True, False])
def test_binary_messages_are_not_accepted(raw, fin):
    raw.send(framed(b"\x00\xff", BINARY, fin=fin))

    assert raw.close_code() == 1003


# --- 5.3 Masking


@pytest.mark.parametrize("opcode", [TEXT, BINARY, CONTINUATION, PING, PONG, CLOSE])
def test_a_frame_that_is_not_masked_is_an_error(raw, opcode):
    raw.send(framed(b"", opcode, mask=None))

    assert raw.close_code() == 1002


@pytest.mark.parametrize("mask", [b"\0\0\0\0", b"\xff\xff\xff\xff", b"\0\0\0\1", b"\x80\0\0\0"])
def test_any_mask_is_undone(raw, mask):
    for size in (17, 18, 19, 20, 1023):
        raw.send(framed(padded(size), mask=mask))
        assert raw.said()["type"] == "pong"


def test_each_frame_has_a_mask_of_its_own(raw):
    half = len(PING_COMMAND) // 2
    raw.send(
        framed(PING_COMMAND[:half], fin=False, mask=random_mask()),
        framed(PING_COMMAND[half:], CONTINUATION, mask=random_mask()),
    )

    assert raw.said()["type"] == "pong"


# --- 5.4 Fragmentation


@pytest.mark.parametrize("cut", [0, 1, 8, 16, 17])
def test_a_message_in_two_frames_is_one(raw, cut):
    raw.send(framed(PING_COMMAND[:cut], fin=False), framed(PING_COMMAND[cut:], CONTINUATION))

    assert raw.said()["type"] == "pong"


def test_a_message_in_many_frames_is_one_also_byte_by_byte(raw):
    first, *rest = (PING_COMMAND[at : at + 1] for at in range(len(PING_COMMAND)))
    frames = [framed(first, fin=False), *(framed(byte, CONTINUATION, fin=False) for byte in rest)]
    raw.dribble(b"".join([*frames, framed(b"", CONTINUATION)]), 3)

    assert raw.said()["type"] == "pong"


def test_a_message_of_empty_frames_is_an_empty_message(raw):
    raw.send(framed(b"", fin=False), framed(b"", CONTINUATION, fin=False), framed(b"", CONTINUATION))

    assert raw.said()["code"] == "invalid_body"
    assert alive(raw)


def test_control_frames_may_come_between_the_frames_of_a_message(raw):
    raw.send(
        framed(PING_COMMAND[:5], fin=False),
        framed(b"one", PING),
        framed(PING_COMMAND[5:9], CONTINUATION, fin=False),
        framed(b"two", PING),
        framed(b"unasked", PONG),
        framed(PING_COMMAND[9:], CONTINUATION),
    )

    assert [(frame.opcode, frame.payload) for frame in (raw.until(PONG), raw.until(PONG))] == [
        (PONG, b"one"),
        (PONG, b"two"),
    ]
    assert raw.said()["type"] == "pong"


@pytest.mark.parametrize("fin", [True, False])
def test_a_continuation_of_nothing_is_an_error(raw, fin):
    raw.send(framed(PING_COMMAND, CONTINUATION, fin=fin))

    assert raw.close_code() == 1002


def test_a_continuation_after_the_end_is_an_error(raw):
    raw.send(framed(PING_COMMAND[:5], fin=False), framed(PING_COMMAND[5:], CONTINUATION), framed(b"more", CONTINUATION))

    assert raw.said()["type"] == "pong"
    assert raw.close_code() == 1002


@pytest.mark.parametrize("opcode", [TEXT, BINARY])
def test_a_message_within_a_message_is_an_error(raw, opcode):
    raw.send(framed(b"{", fin=False), framed(b"}", opcode))

    assert raw.close_code() == 1002


def test_the_limit_holds_for_all_frames_of_a_message_together(raw):
    raw.send(framed(b" " * 65_000, fin=False), framed(b" " * 600, CONTINUATION))

    assert raw.close_code() == 1009


def test_a_flood_of_fragments_ends(raw):
    raw.send(framed(b" ", fin=False), *[framed(b"", CONTINUATION, fin=False)] * 1100)

    assert raw.close_code() == 1009


# --- 5.5 Control frames


@pytest.mark.parametrize("payload", [b"", b"hello", b"\x00\xff\xfe\xfd", b"p" * 125])
def test_a_ping_is_answered_with_what_it_carries(raw, payload):
    raw.send(framed(payload, PING))

    frame = raw.until(PONG)

    assert frame.payload == payload
    assert alive(raw)


def test_pings_are_answered_in_their_order(raw):
    raw.send(*(framed(b"payload-%d" % number, PING) for number in range(10)))

    assert [raw.until(PONG).payload for _ in range(10)] == [b"payload-%d" % number for number in range(10)]


def test_a_ping_that_comes_byte_by_byte_is_answered(raw):
    raw.dribble(framed(b"p" * 125, PING))

    assert raw.until(PONG).payload == b"p" * 125


@pytest.mark.parametrize("payload", [b"", b"unsolicited"])
def test_a_pong_that_nobody_asked_for_is_passed_over(raw, payload):
    raw.send(framed(payload, PONG))

    assert alive(raw)


@pytest.mark.parametrize("opcode", [PING, PONG, CLOSE])
def test_a_control_frame_of_more_than_125_bytes_is_an_error(raw, opcode):
    raw.send(framed(b"\x03\xe8" + b"x" * 124, opcode))

    assert raw.close_code() == 1002


@pytest.mark.parametrize("opcode", [PING, PONG, CLOSE])
def test_a_control_frame_in_pieces_is_an_error(raw, opcode):
    raw.send(framed(b"", opcode, fin=False))

    assert raw.close_code() == 1002


# --- 5.5.1 and 7 Closing


@pytest.mark.parametrize("code", [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4999])
def test_a_close_is_answered_with_its_own_code(raw, code):
    raw.send(closing(code, b"good bye"))

    assert raw.close_code() == code


def test_a_close_without_a_code_is_answered(raw):
    raw.send(closing(None))

    assert raw.close_code() == 1000


@pytest.mark.parametrize("code", [0, 1, 999, 1004, 1005, 1006, 1015, 1016, 1100, 2000, 2999, 5000, 65_535])
def test_a_code_that_may_not_be_sent_is_an_error(raw, code):
    raw.send(closing(code))

    assert raw.close_code() == 1002


def test_a_close_with_half_a_code_is_an_error(raw):
    raw.send(framed(b"\x03", CLOSE))

    assert raw.close_code() == 1002


def test_the_longest_reason_is_taken_and_one_that_is_no_text_is_not(server, server_key, raw):
    raw.send(closing(1000, b"x" * 123))
    assert raw.close_code() == 1000

    with Raw(("127.0.0.1", server.port), f"/stream?api_key={server_key}") as other:
        other.send(closing(1000, b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80edited"))
        assert other.close_code() == 1007


def test_what_follows_a_close_is_not_read(raw):
    raw.send(closing(1000), framed(PING_COMMAND), framed(b"late", PING), closing(1001))

    assert raw.close_code() == 1000


def test_a_close_within_a_message_ends_it(raw):
    raw.send(framed(PING_COMMAND[:5], fin=False), closing(1000), framed(PING_COMMAND[5:], CONTINUATION))

    assert raw.close_code() == 1000


def test_what_is_wrong_first_decides(raw):
    raw.send(framed(b"\xff"), framed(b"", 3), closing(1000))

    assert raw.close_code() == 1007


def test_a_client_that_hangs_up_without_a_word_harms_nobody(server, server_key, raw):
    for sent in (b"", framed(PING_COMMAND)[:3], framed(PING_COMMAND, fin=False), framed(b"", length=1000)):
        with Raw(("127.0.0.1", server.port), f"/stream?api_key={server_key}") as other:
            other.send(sent)

    assert alive(raw)


# --- 8.1 UTF-8

VALID = [
    "Hello-µ@ßöäüàá-UTF-8!!",
    "κόσμε",
    "\u0000",
    "\u007f",
    "\u0080",
    "\u07ff",
    "\u0800",
    "\ud7ff",
    "\ue000",
    "\ufffd",
    "\uffff",
    "\U00010000",
    "\U0010ffff",
    "\ufeff" + "x",
]
INVALID = [
    b"\xce\xba\xe1\xbd\xb9\xcf\x83\xce\xbc\xce\xb5\xed\xa0\x80\x65\x64",  # a surrogate
    b"\xed\xa0\x80",
    b"\xed\xaf\xbf",
    b"\xed\xbf\xbf",
    b"\xed\xa0\x80\xed\xb0\x80",  # a pair of them
    b"\xc0\xaf",  # longer than need be
    b"\xe0\x80\xaf",
    b"\xf0\x80\x80\xaf",
    b"\xc1\xbf",
    b"\xe0\x9f\xbf",
    b"\xf0\x8f\xbf\xbf",
    b"\xf4\x90\x80\x80",  # beyond the last code point
    b"\xf8\x88\x80\x80\x80",
    b"\xfc\x84\x80\x80\x80\x80",
    b"\x80",  # goes on with nothing
    b"\xbf",
    b"\x80\xbf\x80\xbf",
    b"\xc2",  # ends too early
    b"\xe1\xbd",
    b"\xf0\x90\x80",
    b"\xc3\x28",
    b"\xfe",
    b"\xff",
]


@pytest.mark.parametrize("text", VALID, ids=ascii)
def test_any_text_is_read_however_it_is_cut(raw, text):
    data = text.encode()
    for cut in range(len(data) + 1):
        raw.send(framed(data[:cut], fin=False), framed(data[cut:], CONTINUATION))
        assert raw.said()["code"] == "invalid_body"
    assert alive(raw)


@pytest.mark.parametrize("data", INVALID, ids=lambda data: data.hex())
def test_what_is_no_text_is_refused_whole_or_in_pieces(server, server_key, data):
    ways = [[framed(data)], [framed(b"Hello " + data + b" world")]]
    ways.append([framed(data[:1], fin=False), framed(data[1:], CONTINUATION)])
    for frames in ways:
        with Raw(("127.0.0.1", server.port), f"/stream?api_key={server_key}") as raw:
            raw.send(*frames)
            assert raw.close_code() == 1007


def test_what_can_no_longer_become_text_is_refused_before_the_message_ends(raw):
    raw.send(framed(b"\xf4", fin=False), framed(b"\x90", CONTINUATION, fin=False))

    assert raw.close_code() == 1007


# --- Chance


def test_random_bytes_are_answered_by_a_close_or_by_nothing(server, server_key, raw):
    dice = random.Random(6455)
    for _ in range(40):
        with Raw(("127.0.0.1", server.port), f"/stream?api_key={server_key}") as noisy:
            noisy.send(dice.randbytes(dice.randrange(1, 400)))
            noisy.socket.shutdown(1)
            assert noisy.close_code() in {None, 1002, 1003, 1007, 1009}

    assert alive(raw)


# --- Limits of ours


def test_who_says_too_much_is_read_more_slowly_and_bothers_nobody(server, server_key, raw):
    with Raw(("127.0.0.1", server.port), f"/stream?api_key={server_key}") as noisy:
        noisy.send(framed(PING_COMMAND) * 400)
        assert [noisy.said()["type"] for _ in range(400)] == ["pong"] * 400
        noisy.send(framed(b"", PING) * 1200)
        began = time.monotonic()
        for _ in range(1200):
            assert noisy.until(PONG) is not None
        assert time.monotonic() - began > 2.0  # a thousand at once, then 200 a second
        noisy.send(framed(b"", PING) * 4000)  # for twenty seconds
        assert alive(raw)
        assert len(noisy.socket.recv(1 << 16, socket.MSG_PEEK)) < 4000 * len(framed(b"", PONG, mask=None))
