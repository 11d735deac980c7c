"""Nodes' refusals, word for word, and their meaning."""

from __future__ import annotations

import pytest

from upstream.chain.refusals import BatchTooLarge, NodeBehind, RangeTooLarge, classify
from upstream.transport.errors import RateLimited, Unavailable

LESS = [
    (-32005, "query returned more than 10000 results. Try with this block range [0x575b1e0, 0x575b244]."),
    (-32602, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range"),
    (-32000, "block range too large"),
    (-32000, "exceed maximum block range: 5000"),
    (-32614, "eth_getLogs is limited to a 10,000 range"),
    (-32615, "eth_getLogs is limited to a 5 range"),
    (35, "ranges over 10000 blocks are not supported on freetier"),
    (-32600, "Under the Free tier plan, you can make eth_getLogs requests with up to a 10 block range."),
    (-32000, "requested too many blocks from 1 to 20000, maximum is set to 2048"),
    (-32000, "query timeout exceeded"),
    (-32602, "query exceeds max results 20000, retry with the range 91660288-91660300"),
    (-32000, "response size should not greater than 157286400 bytes"),
    (-32603, "request timed out"),
    (-32602, "block range is too wide"),
]
SLOWER = [
    (429, "Your app has exceeded its compute units per second capacity."),
    (-32005, "daily request count exceeded, request rate limited"),
    (-32090, "Too many requests, reason: call rate limit exhausted, retry in 10s"),
    (-32007, "50/second request limit reached - reduce calls per second"),
    (-32029, "over"),
]
LATER = [
    (-32000, "header not found"),
    (-32000, "One of the blocks specified in filter (fromBlock, toBlock or blockHash) cannot be found."),
    (-32000, "block range extends beyond current head block"),
    (-32602, "invalid block range params"),
    (-39001, "Unknown block"),
]
FEWER = [
    (-32600, "batch too large"),
    (-32005, "Batch size is too large"),
    (-32600, "JSON-RPC batch requests are not supported"),
    (-32014, "maximum batch size exceeded"),
]
PASSING = [(-32603, "Internal error"), (-32000, "missing trie node"), (-32601, "the method does not exist"), (0, "")]


@pytest.mark.parametrize(
    ("code", "message", "kind"),
    [
        (code, message, kind)
        for told, kind in [
            (LESS, RangeTooLarge),
            (SLOWER, RateLimited),
            (LATER, NodeBehind),
            (FEWER, BatchTooLarge),
            (PASSING, Unavailable),
        ]
        for code, message in told
    ],
)
def test_a_refusal_is_known_by_its_text(code, message, kind):
    assert type(classify("eth_getLogs", code, message)) is kind


def test_a_range_that_the_node_proposes_is_taken_up():
    fault = classify("eth_getLogs", *LESS[0])

    assert isinstance(fault, RangeTooLarge)
    assert fault.suggested == (0x575B1E0, 0x575B244)


def test_only_logs_have_ranges():
    assert type(classify("eth_getBlockByNumber", -32000, "query timeout exceeded")) is Unavailable
