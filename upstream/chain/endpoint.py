"""One JSON-RPC endpoint: batches of calls, range sizes, and health."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from upstream.chain import abi_words
from upstream.chain.refusals import TAG, BatchTooLarge, NodeBehind, RangeTooLarge, classify
from upstream.chain.wire import Block, RawLog
from upstream.transport.errors import FAULTS, Malformed, RateLimited, Rejected, TooLarge, Unavailable, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from upstream.transport.http import Client

T = TypeVar("T")
Call = tuple[str, list[Any]]

INITIAL_SPAN = 10
"""Blocks of the first eth_getLogs: the limit of the strictest free endpoint."""
MAX_SPAN = 10_000
TARGET_LOGS = 20_000
"""Logs in one response: beyond it ranges shrink, as a response is held in memory."""
MAX_BATCH = 50
GROW_AFTER = 8
"""Successful responses at the largest accepted range before a larger one is tried again."""
NEAR_HEAD_BLOCKS = 64
"""Blocks from the head within which several nodes behind one URL may differ."""
INITIAL_BACKOFF_S, MAX_BACKOFF_S, REFUSED_BACKOFF_S = 0.25, 60.0, 60.0


class WireError(msgspec.Struct):
    """A JSON-RPC error."""

    code: int = 0
    message: str = ""


class WireAnswer(msgspec.Struct):
    """The response to one call."""

    id: int | str | None = None
    result: msgspec.Raw = msgspec.Raw(b"")
    error: WireError | str | None = None


class WireBlock(msgspec.Struct, rename={"parent": "parentHash"}):
    """The header fields that are read."""

    number: str
    hash: str
    parent: str
    timestamp: str


_answers = msgspec.json.Decoder(list[WireAnswer] | WireAnswer)
_block = msgspec.json.Decoder(WireBlock | None)
_logs = msgspec.json.Decoder(list[RawLog])


@dataclass
class EndpointHealth:
    """Health of an endpoint."""

    head: int = -1
    finalized: int | None = None
    seen_at: float = float("-inf")
    failures: int = 0
    """Consecutive failures."""
    backoff_until: float = float("-inf")
    last_error: str = ""
    counts: dict[str, int] = field(default_factory=dict)
    forked_since: float | None = None
    """Since when its newest blocks differ from those of the endpoint in use."""


class RpcEndpoint:
    """One URL. Only its host is ever shown: URLs of paid endpoints have their key in the path."""

    def __init__(self, url: str, order: int, client: Client) -> None:
        self.url = url
        self.order = order
        self.name = f"{order + 1}:{urlsplit(url).netloc.rpartition('@')[2]}"
        self.health = EndpointHealth()
        self.span = INITIAL_SPAN
        self.batch = MAX_BATCH
        self._too_many = MAX_SPAN + 1
        self._steady = 0
        self._client = client

    def call(self, calls: Sequence[Call]) -> list[msgspec.Raw | UpstreamError]:
        """Send calls in as few requests as the endpoint accepts; a refused call's result is its error."""
        results: list[msgspec.Raw | UpstreamError] = []
        while len(results) < len(calls):
            some = calls[len(results) : len(results) + self.batch]
            try:
                results += self._post(some)
            except BatchTooLarge:
                if len(some) == 1:
                    raise
                self.batch = max(1, len(some) // 2)
        return results

    def call_one(self, method: str, params: list[Any]) -> msgspec.Raw:
        """Send one call; raise its error if refused."""
        return _result(self.call([(method, params)])[0])

    def tip(self) -> tuple[Block, Block | None]:
        """Return the newest block and the newest final one, None where the tag is not supported."""
        head, final = self.call([_header("latest"), _header("finalized")])
        newest = self._header(_result(head), None)
        try:
            finalized = self._header(_result(final), None)
        except NodeBehind:
            finalized = None
        except (RateLimited, Malformed):
            raise
        except Unavailable as fault:
            if not TAG.search(str(fault).lower()):
                raise
            finalized = None
        return newest, finalized

    def blocks(self, numbers: Sequence[int]) -> list[Block]:
        """Return headers; `NodeBehind` if one is not known."""
        results = self.call([_header(hex(number)) for number in numbers])
        return [self._header(_result(answer), number) for answer, number in zip(results, numbers, strict=True)]

    def logs(self, from_: int, to: int, addresses: list[str], topics: list[Any]) -> tuple[list[RawLog], int]:
        """Return logs from a block on, over the largest accepted range, and the last block covered."""
        if self.health.head < to:
            self.health.head = max(self.health.head, self.blocks([to])[0].number)
        while True:
            span = min(self.span, to - from_ + 1)
            last = from_ + span - 1
            try:
                logs = self._logs(from_, last, addresses, topics)
            except RangeTooLarge as fault:
                if span == 1:
                    return self._split(from_, addresses, topics, fault), last
                self._shrink(span, from_, fault.suggested)
            except Unavailable as fault:
                if isinstance(fault.__cause__, httpx.TimeoutException):
                    self._shrink(span, from_, None)
                raise
            else:
                self._grow(span, len(logs))
                return logs, last

    def record_success(self) -> None:
        """Record a success."""
        self.health.failures = 0

    def record_failure(self, fault: UpstreamError, now: float) -> None:
        """Record a failure: the endpoint backs off, longer each time."""
        health = self.health
        health.failures += 1
        health.last_error = str(fault)[:300]
        kind = type(fault).__name__
        health.counts[kind] = health.counts.get(kind, 0) + 1
        backoff_s = min(INITIAL_BACKOFF_S * 2 ** min(health.failures - 1, 20), MAX_BACKOFF_S)
        if isinstance(fault, RateLimited | Unavailable) and fault.retry_after_s is not None:
            backoff_s = min(fault.retry_after_s, MAX_BACKOFF_S)
        elif isinstance(fault, Rejected):
            backoff_s = REFUSED_BACKOFF_S
        elif isinstance(fault, NodeBehind):
            backoff_s = 0.0  # healthy, only late
        health.backoff_until = now + backoff_s

    def _logs(self, from_: int, to: int, addresses: list[str], topics: list[Any]) -> list[RawLog]:
        wanted: dict[str, Any] = {"fromBlock": hex(from_), "toBlock": hex(to), "address": addresses}
        if topics:
            wanted["topics"] = topics
        calls: list[Call] = [("eth_getLogs", [wanted])]
        near = self.health.head - to < NEAR_HEAD_BLOCKS
        if near:  # several nodes may be behind one URL; one that lags omits logs it does not have yet
            calls.append(_header(hex(to)))
        try:
            results = self.call(calls)
        except TooLarge as fault:
            if isinstance(fault, BatchTooLarge):
                raise
            raise RangeTooLarge(str(fault)) from fault
        logs = self._decoded(_logs, _result(results[0]))
        numbers = abi_words.Numbers()
        try:
            outside = [text for text in {log.block_number for log in logs} if not from_ <= numbers[text] <= to]
        except ValueError as fault:
            raise Malformed(f"{self.name}: {fault}") from fault
        if outside:
            raise Malformed(f"{self.name}: logs of block {outside[0]}, asked for {from_} to {to}")
        if near:
            header = self._header(_result(results[1]), to)
            last = f"0x{header.hash.hex()}"
            if any(log.block_hash.lower() != last for log in logs if numbers[log.block_number] == to):
                raise Unavailable(f"{self.name}: block {to} changed meanwhile")
        return logs

    def _split(self, number: int, addresses: list[str], topics: list[Any], fault: RangeTooLarge) -> list[RawLog]:
        """Read one block whose logs exceed one response, contract by contract."""
        parts = []
        for address in addresses if len(addresses) > 1 else []:
            try:
                parts.append(self._logs(number, number, [address], topics))
            except RangeTooLarge as met:
                fault = met
                break
        if len(parts) < len(addresses):
            raise TooLarge(f"{self.name}: the logs of block {number} in one answer: {fault}") from fault
        if len({log.block_hash for part in parts for log in part}) > 1:
            raise Unavailable(f"{self.name}: block {number} changed meanwhile")
        return sorted((log for part in parts for log in part), key=lambda log: int(log.log_index, 16))

    def _shrink(self, span: int, from_: int, suggested: tuple[int, int] | None) -> None:
        self._too_many = span
        self._steady = 0
        self.span = max(1, span // 2)
        if suggested is not None and suggested[0] == from_ and 1 <= suggested[1] - from_ + 1 < span:
            self.span = suggested[1] - from_ + 1

    def _grow(self, span: int, logs: int) -> None:
        if logs > TARGET_LOGS:
            self.span = max(1, span * TARGET_LOGS // logs)
        elif span == self.span:
            cap = max(self._too_many - 1, span)
            self._steady = self._steady + 1 if span == cap else 0
            if self._steady == GROW_AFTER:  # the limit may have been temporary
                self._too_many = min(self._too_many + max(1, self._too_many // 2), MAX_SPAN + 1)
            self.span = min(span + max(1, span // 4), cap, MAX_SPAN)

    def _post(self, calls: Sequence[Call]) -> list[msgspec.Raw | UpstreamError]:
        body = [
            {"jsonrpc": "2.0", "id": at, "method": method, "params": params}
            for at, (method, params) in enumerate(calls)
        ]
        try:
            answers = self._client.post(self.url, _answers, body if len(body) > 1 else body[0])
        except UpstreamError as fault:
            raise self._without_url(fault, calls[0][0]) from fault.__cause__
        if isinstance(answers, WireAnswer):
            if len(calls) > 1 or answers.id is None:  # one error instead of the batch's responses
                whole = self._fault(calls[0][0], answers)
                raise BatchTooLarge(str(whole)) if len(calls) > 1 and not isinstance(whole, RateLimited) else whole
            answers = [answers]
        by_id = {answer.id: answer for answer in answers}
        if by_id.keys() != set(range(len(calls))):
            raise Malformed(f"{self.name}: answers to other calls than these {len(calls)}")
        return [
            answer.result if answer.error is None and bytes(answer.result) else self._fault(calls[at][0], answer)
            for at in range(len(calls))
            for answer in (by_id[at],)
        ]

    def _fault(self, method: str, answer: WireAnswer) -> UpstreamError:
        error = answer.error
        if error is None:
            return Malformed(f"{self.name}: {method}: neither result nor error")
        code, message = (0, error) if isinstance(error, str) else (error.code, error.message)
        fault = classify(method, code, message)
        fault.args = (f"{self.name}: {fault}",)
        return fault

    def _without_url(self, fault: UpstreamError, method: str) -> UpstreamError:
        """Return an error without the endpoint's URL; interpret bodies sent with status 400 and the like."""
        said = str(fault).replace(self.url, self.name)
        if isinstance(fault, Rejected):
            read = classify(method, 413 if fault.status == 413 else 0, said)
            if type(read) is not Unavailable:
                read.args = (said,)
                return read
            if fault.status == 413:
                return RangeTooLarge(said) if method == "eth_getLogs" else BatchTooLarge(said)
        fault.args = (said,)
        return fault

    def _header(self, raw: msgspec.Raw, number: int | None) -> Block:
        block = self._decoded(_block, raw)
        if block is None:
            raise NodeBehind(f"{self.name}: block {'' if number is None else number} is not known")
        try:
            numbers = abi_words.Numbers()
            read = Block(
                numbers[block.number],
                abi_words.from_hex_sized(block.hash, 32),
                abi_words.from_hex_sized(block.parent, 32),
                numbers[block.timestamp],
            )
        except ValueError as fault:
            raise Malformed(f"{self.name}: {fault}") from fault
        if number is not None and read.number != number:
            raise Malformed(f"{self.name}: block {read.number} instead of {number}")
        return read

    def _decoded(self, decoder: msgspec.json.Decoder[T], raw: msgspec.Raw) -> T:
        try:
            return decoder.decode(raw)
        except FAULTS as fault:
            raise Malformed(f"{self.name}: {fault}: {bytes(raw)[:120].decode('utf-8', 'replace')}") from fault


def _header(block: str) -> Call:
    return "eth_getBlockByNumber", [block, False]


def _result(answer: msgspec.Raw | UpstreamError) -> msgspec.Raw:
    if isinstance(answer, UpstreamError):
        raise answer
    return answer
