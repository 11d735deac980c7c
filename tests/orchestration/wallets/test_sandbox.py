"""Positions of the sandbox's wallets, from its chain: as many shares of one outcome as of the other."""

from __future__ import annotations

import datetime as dt
import threading
import time

from config.settings import Settings
from orchestration.settlement.feed import SettlementFeed
from orchestration.wallets import positions
from upstream.chain.contracts import POLYGON
from upstream.chain.rpc import Rpc
from upstream.sandbox.server import Sandbox

ENOUGH = 400  # fills


def test_what_is_held_adds_up_over_all_wallets(conn, database_url):
    with Sandbox(simulate=21, rate=600, markets=20) as exchange:
        configured = Settings(_env_file=None, settlement_poll_ms=100, chain_start_block=exchange.chain.head)
        stopped = threading.Event()
        with Rpc([exchange.rpc_url], read_s=2, total_s=4, rounds=2) as rpc:
            feed = SettlementFeed(configured, database_url, rpc, POLYGON, run_id="a", window_s=600, observe_s=1)
            running = threading.Thread(target=feed.run, args=(stopped.is_set, lambda _: None))
            running.start()
            try:
                end = time.monotonic() + 60
                while not settled(conn):
                    assert time.monotonic() < end, "nothing is settled"
                    time.sleep(0.1)
            finally:
                stopped.set()
                running.join(60)
        markets = exchange.call(lambda: [market.tokens for market in exchange.exchange.catalogue])
    conn.execute("update chain_heads set finalized = indexed")  # which takes the sandbox half a minute
    done = positions.bring_up_to_date(conn, dt.datetime.now(dt.UTC)).block
    rows = conn.execute(
        "select token_id, sum(held)::bigint, min(held) from wallet_positions join chain_tokens using (token_key)"
        " where not base group by 1"
    ).fetchall()
    held = {token: (total, least) for token, total, least in rows}
    # In these kinds shares of one outcome move alone.
    alone = {
        token
        for (token,) in conn.execute(
            "select distinct token_id from position_changes join chain_tokens using (token_key)"
            " where kind in ('redeem', 'convert')"
        )
    }
    checked = [tokens for tokens in markets if set(tokens) & held.keys() and not set(tokens) & alone]

    assert done is not None
    assert len(checked) > 5
    for tokens in checked:
        assert len({held.get(token, (0, 0))[0] for token in tokens}) == 1
    assert min(least for _, least in held.values()) >= 0
    left_out = conn.execute("select wallet, token_key from wallet_positions where left_out > 0").fetchall()
    sent = conn.execute("select wallet, token_key from position_changes where kind = 'transfer'").fetchall()
    assert set(left_out) <= set(sent)


def settled(conn):
    return conn.execute("select count(*) from wallet_fills").fetchone()[0] > ENOUGH
