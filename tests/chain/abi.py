"""Solidity ABI encoding, independent of the code under test."""

from __future__ import annotations

from typing import Any

WORD = 32


def encode(types: list[str], values: list[Any]) -> bytes:
    """Return the encoded arguments of a call: the static parts in order, then the dynamic ones they point to."""
    assert len(types) == len(values), f"{len(values)} values for {types}"
    parts = [_encoded(kind, value) for kind, value in zip(types, values, strict=True)]
    offset = sum(WORD if _dynamic(kind) else len(part) for kind, part in zip(types, parts, strict=True))
    head, tail = b"", b""
    for kind, part in zip(types, parts, strict=True):
        if _dynamic(kind):
            head += (offset + len(tail)).to_bytes(WORD)
            tail += part
        else:
            head += part
    return head + tail


def _dynamic(kind: str) -> bool:
    return kind.endswith("[]") or kind == "bytes"


def _encoded(kind: str, value: Any) -> bytes:
    if kind.endswith("[]"):
        return len(value).to_bytes(WORD) + encode([kind[:-2]] * len(value), list(value))
    match kind:
        case "bytes":
            return len(value).to_bytes(WORD) + value + bytes(-len(value) % WORD)
        case "address":
            assert len(value) == 20, value
            return value.rjust(WORD, b"\0")
        case "bytes32":
            assert len(value) == WORD, value
            return value
        case "bool" | "uint8" | "uint256":
            return int(value).to_bytes(WORD)
    raise AssertionError(kind)
