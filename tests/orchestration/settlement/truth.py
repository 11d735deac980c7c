"""Reference reading of the chain: every log from its receipt, decoded with eth_abi, and compared with the tables.

Nothing of the indexer or its decoder is used here, except for the ledger: there the decoder is given the receipts'
logs.
"""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import msgspec
from eth_abi import decode as abi
from eth_utils import keccak

from tests import stream_rows
from tests.chain import contracts
from upstream.chain.contracts import POLYGON, followed
from upstream.chain.decode import decode
from upstream.chain.wire import RawLog

MICRO = 1_000_000
EXCHANGES = {
    contracts.address(name): version
    for name, version in (
        ("exchange_v1", 1), ("neg_risk_exchange_v1", 1), ("exchange_v2", 2), ("neg_risk_exchange_v2", 2)
    )
}  # fmt: skip


def topic(signature):
    return keccak(text=signature)


FILLED = {
    topic("OrderFilled(bytes32,address,address,uint256,uint256,uint256,uint256,uint256)"): 1,
    topic("OrderFilled(bytes32,address,address,uint8,uint256,uint256,uint256,uint256,bytes32,bytes32)"): 2,
}
MATCHED = {
    topic("OrdersMatched(bytes32,address,uint256,uint256,uint256,uint256)"),
    topic("OrdersMatched(bytes32,address,uint8,uint256,uint256,uint256)"),
}
OURS = set(followed(POLYGON))
NAMED = {contract.address for contract in POLYGON} | {bytes(20)}


class Truth:
    """The expected contents of the tables for a chain, from a block on."""

    def __init__(self, chain, from_=0, to=None):
        logs = chain.logs(from_, to)
        self.blocks = {block.number: block for block in chain.blocks(from_, to)}
        self.ours = [log for log in logs if raw(log["address"]) in OURS]
        self.counts = Counter(int(log["blockNumber"], 16) for log in self.ours)
        self.settlements = sorted(self._settlements())
        self.wallet_fills = sorted(self._wallet_fills())
        self.ledger = sorted(self._ledger())

    def _settlements(self):
        rows = []
        run = []  # makers' rows that still wait for their taker's
        for log in self.ours:
            exchange, topics, data = raw(log["address"]), [raw(t) for t in log["topics"]], raw(log["data"])
            version = EXCHANGES.get(exchange)
            if version is None or not topics:
                continue
            if topics[0] in MATCHED:
                run = [row for row in run if row["exchange"] != exchange]
            if FILLED.get(topics[0]) != version or len(topics) != 4 or len(data) != (160 if version == 1 else 224):
                continue
            row = self._row(log, exchange, topics, fill(version, data))
            rows.append(row)
            same = [r for r in run if r["exchange"] == exchange and r["tx"] == row["tx"]]
            if row["taker"] == exchange:
                row["match"] = row["index"]
                for maker in same:
                    if maker["taker"] == row["maker"]:
                        maker["match"] = row["index"]
                run = [r for r in run if r["exchange"] != exchange]
            else:
                run = [*(r for r in run if r["tx"] == row["tx"]), row]
        for row in rows:
            own = row["taker"] == row["exchange"]
            counted = own or row["match"] is None
            yield (
                *(row["number"], row["index"], row["ts"], row["tx"], row["exchange"], row["token"], row["maker"]),
                *(row["taker"], row["side"], -1 if row["price"] is None else row["price"], row["size"], row["value"]),
                *(row["fee"], own, counted, -1 if row["match"] is None else row["match"]),
            )

    def _row(self, log, exchange, topics, said):
        side, token, size, value, fee = said
        impossible = size == 0 or value > size
        price = None if impossible else round(Fraction(value * MICRO, size)) or None
        number = int(log["blockNumber"], 16)
        return {
            "number": number,
            "index": int(log["logIndex"], 16),
            "ts": self.blocks[number].ts_s,
            "tx": raw(log["transactionHash"]),
            "exchange": exchange,
            "token": str(token),
            "side": side,
            "maker": topics[2][12:],
            "taker": topics[3][12:],
            "price": price,
            "size": size,
            "value": value,
            "fee": fee,
            "match": None,
        }

    def _wallet_fills(self):
        for (
            number,
            index,
            ts,
            _,
            _,
            token,
            maker,
            taker,
            side,
            price,
            size,
            value,
            fee,
            own,
            _,
            match,
        ) in self.settlements:
            yield maker, ts, number, index, own, token, side, price, size, value, fee
            if match == -1 and not own and taker not in NAMED:
                yield taker, ts, number, index, True, token, -side, price, size, value, 0

    def _ledger(self):
        decoded = decode(msgspec.convert(self.ours, list[RawLog]), POLYGON)
        for e in decoded.ledger:
            token = None if e.token < 0 else decoded.tokens[e.token]
            yield (
                *(e.block_number, e.log_index, e.entry, self.blocks[e.block_number].ts_s, e.kind, e.wallet or b""),
                *(e.counterparty or b"", e.condition_id or b"", token or "", e.amount, e.tx_hash, said(e.detail)),
            )
        for r in decoded.resolutions:
            detail = {
                "numerators": list(r.numerators),
                "oracle": "0x" + r.oracle.hex(),
                "question_id": "0x" + r.question_id.hex(),
            }
            yield (
                *(r.block_number, r.log_index, 0, self.blocks[r.block_number].ts_s, "resolution", b"", b""),
                *(r.condition_id, "", 0, r.tx_hash, said(detail)),
            )


def fill(version, data):
    """Decode side, token, shares, USD and fee in USD of an OrderFilled."""
    if version == 1:
        given_asset, got_asset, given, got, fee = abi(["uint256"] * 5, data)
        if given_asset == 0:
            return 1, got_asset, got, given, round(Fraction(fee * given, got)) if got else 0
        return -1, given_asset, given, got, fee
    side, token, given, got, fee, _, _ = abi(["uint8", *["uint256"] * 4, "bytes32", "bytes32"], data)
    return (1, token, got, given, fee) if side == 0 else (-1, token, given, got, fee)


def raw(text):
    return bytes.fromhex(text[2:])


def said(detail):
    return msgspec.json.encode(detail, order="deterministic").decode()


# --- Stored data ---------------------------------------------------------------------------------------------------


def settlements(conn):
    return sorted(
        conn.execute("""
            select s.block_number, s.log_index, extract(epoch from s.ts)::bigint, s.tx_hash, k.address, c.token_id,
                s.maker, s.taker, s.side, coalesce(s.price, -1), s.size, s.value_usd, s.fee_usd, s.is_taker_order,
                s.counted, coalesce(s.match_index, -1)
            from settlements s join chain_tokens c using (token_key) join chain_contracts k using (contract_key)
        """).fetchall()
    )


def wallet_fills(conn):
    return sorted(
        conn.execute("""
            select f.wallet, extract(epoch from f.ts)::bigint, f.block_number, f.log_index, f.is_taker, c.token_id,
                f.side, coalesce(f.price, -1), f.size, f.value_usd, f.fee_usd
            from wallet_fills f join chain_tokens c using (token_key)
        """).fetchall()
    )


def ledger(conn):
    rows = conn.execute("""
        select l.block_number, l.log_index, l.entry, extract(epoch from l.ts)::bigint, l.kind, coalesce(l.wallet, ''),
            coalesce(l.counterparty, ''), coalesce(l.condition_id, ''), coalesce(c.token_id, ''), l.amount, l.tx_hash,
            l.detail
        from ledger_entries l left join chain_tokens c using (token_key)
    """).fetchall()
    return sorted((*row[:-1], said(row[-1])) for row in rows)


def blocks(conn):
    return {
        number: (hash_, logs) for number, hash_, logs in conn.execute("select number, hash, logs from chain_blocks")
    }


def net(conn):
    """Return what a subscriber of all messages holds: each fill published, less those revoked."""
    held = {}
    seqs = []
    for seq, text in ((row.seq, row.message) for row in stream_rows.rows(conn, "onchain_trade")):
        seqs.append(seq)
        message = msgspec.json.decode(text)
        data = message["data"]
        assert message["seq"] == seq
        place = data["block_number"], data["log_index"]
        if data.get("revoked"):
            gone = held.pop(place)
            assert gone == data["block_hash"], f"{place} was told of another block"
        else:
            assert place not in held, f"{place} was told twice"
            held[place] = data["block_hash"]
    return held


def compare(conn, chain, *, from_=0, to=None, followed_from=None, told=True):
    """Compare every table with the chain; return the differences, of which there should be none."""
    truth = Truth(chain, from_, to)
    different = {}
    for name, ours, theirs in (
        ("settlements", settlements(conn), truth.settlements),
        ("wallet_fills", wallet_fills(conn), truth.wallet_fills),
        ("ledger_entries", ledger(conn), truth.ledger),
    ):
        if ours != theirs:
            a, b = Counter(ours), Counter(theirs)
            different[name] = {"too many": list((a - b).elements())[:3], "missing": list((b - a).elements())[:3]}
    stored = blocks(conn)
    expected = {
        number: (block.hash, truth.counts[number])
        for number, block in truth.blocks.items()
        if truth.counts[number] or (followed_from is not None and number >= followed_from)
    }
    unneeded = {n for n, (h, logs) in stored.items() if n not in expected and logs == 0 and truth.blocks[n].hash == h}
    stored = {n: b for n, b in stored.items() if n not in unneeded}
    if stored != expected:
        different["chain_blocks"] = {
            n: (stored.get(n), expected.get(n))
            for n in stored.keys() | expected.keys()
            if stored.get(n) != expected.get(n)
        }
    ranges = conn.execute("select from_block, to_block, logs from chain_ranges order by 1").fetchall()
    top = max(truth.blocks)
    if ranges != [(from_, top, sum(truth.counts.values()))]:
        different["chain_ranges"] = (ranges, (from_, top, sum(truth.counts.values())))
    (counted,) = conn.execute("select count(*) from settlements where counted").fetchone()
    (total,) = conn.execute("select max(trades) from chain_heads").fetchone()
    if total not in (None, counted):
        different["trades"] = (total, counted)
    if told:
        heard = net(conn)
        if heard != {(row[0], row[1]): "0x" + truth.blocks[row[0]].hash.hex() for row in truth.settlements}:
            different["stream"] = len(heard), len(truth.settlements)
    return different
