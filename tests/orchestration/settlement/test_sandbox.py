"""The sandbox's chain followed as Polygon's is: its trades are in the tables, whatever went wrong."""

from __future__ import annotations

import threading

import httpx

from config.settings import Settings
from orchestration.settlement.feed import SettlementFeed
from tests.patience import until
from upstream.chain.contracts import POLYGON
from upstream.chain.rpc import Rpc
from upstream.sandbox.server import Sandbox

FAULTS = (
    {"kind": "reorg", "depth": 3, "at_s": 1.5},
    {"kind": "lag", "depth": 2, "at_s": 2.0, "for_s": 1},
    {"kind": "rpc_error", "error": "response_size", "method": "eth_getLogs", "at_s": 2.5, "for_s": 0.6},
    {"kind": "range_limit", "blocks": 2, "at_s": 3.0, "for_s": 1},
    {"kind": "truncate", "target": "/rpc", "probability": 0.3, "at_s": 3.5, "for_s": 0.5},
    {"kind": "reorg", "depth": 6, "at_s": 4.5},
)


def test_every_trade_of_the_sandbox_is_settled_in_the_tables(conn, database_url):
    """Each with the hash its print had, its wallets and its amounts, though the chain was reorganised twice."""
    with Sandbox(simulate=21, rate=300, markets=20) as exchange:
        first = exchange.chain.head
        configured = Settings(_env_file=None, settlement_poll_ms=100, chain_start_block=first)
        stopped = threading.Event()
        with Rpc([exchange.rpc_url], read_s=2, total_s=4, rounds=2) as rpc:
            feed = SettlementFeed(configured, database_url, rpc, POLYGON, run_id="a", window_s=600, observe_s=1)
            running = threading.Thread(target=feed.run, args=(stopped.is_set, lambda _: None))
            running.start()
            try:
                httpx.post(f"{exchange.url}/sandbox/faults", json=list(FAULTS), trust_env=False).raise_for_status()
                until(lambda: not exchange.faults.planned)
                newest = exchange.call(lambda: exchange.chain.blocks[-1])
                head = newest.number
                # By hash: the height alone may be that of the branch abandoned just now.
                until(lambda: (head, newest.hash) in stored(conn))
            finally:
                stopped.set()
                running.join(60)
        last = indexed(conn)
        told = exchange.call(lambda: matched(exchange, first, last))

    assert exchange.chain.reorganised == 2
    assert last >= head
    assert len(told) > 20
    assert settled(conn) == told
    assert conn.execute("select count(*) from quarantine").fetchone() == (0,)


def stored(conn):
    return set(conn.execute("select number, hash from chain_blocks").fetchall())


def indexed(conn):
    row = conn.execute("select indexed from chain_heads where feed = 'settlement'").fetchone()
    return row and row[0]


def matched(exchange, first, last):
    """Return the trades settled in these blocks: hash, taker, maker, token, side of the taker, shares, USD."""
    place = {
        transaction.tx: block.number
        for block in exchange.chain.blocks
        for transaction in block.transactions
        if first <= block.number <= last
    }
    rows = {}
    for trade in exchange.exchange.trades.newest_first():
        if (tx := bytes.fromhex(trade.tx[2:])) in place:
            key = (place[tx], tx, bytes.fromhex(trade.taker[2:]), trade.token, 1 if trade.side == "BUY" else -1)
            shares, value, makers = rows.get(key, (0, 0, set()))
            makers = makers | {bytes.fromhex(trade.maker[2:])}
            rows[key] = (shares + trade.size, value + trade.price * trade.size // 1_000_000, makers)
    return rows


def settled(conn):
    rows = conn.execute("""
        select block_number, tx_hash, maker, token_id, side, size, value_usd,
               (select array_agg(m.maker) from settlements m
                where m.block_number = s.block_number and m.match_index = s.log_index and not m.is_taker_order)
        from settlements s join chain_tokens using (token_key)
        where counted
    """).fetchall()
    return {tuple(row[:5]): (row[5], row[6], set(row[7])) for row in rows}
