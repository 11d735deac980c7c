"""A writer of stream events that holds transactions open, rolls some back, and may be killed at any time."""

from __future__ import annotations

import random
import sys
import time

import psycopg

from orchestration import stream

TYPES = ("trade", "orderbook", "price", "market", "signal", "onchain_trade", "wallet_activity")
MARKETS = [f"0x{number:064x}" for number in range(1, 21)]
WALLETS = [number.to_bytes(20, "big") for number in range(1, 11)]


def write(conn: psycopg.Connection, dice: random.Random) -> None:
    with conn.transaction() as transaction:
        conn.execute("select 1")
        if dice.random() < 0.3:
            time.sleep(dice.uniform(0, 0.15))  # before the numbers are taken: other writers overtake
        messages = []
        for _ in range(dice.randint(1, 20)):
            kind = dice.choice(TYPES)
            market = None if dice.random() < 0.05 else dice.choice(MARKETS)
            wallet = dice.choice(WALLETS) if kind == "wallet_activity" else None
            messages.append(stream.message(kind, int(time.time() * 1000), market, {}, wallet))
        stream.publish(conn, messages, int(time.time() * 1000))
        if dice.random() < 0.1:
            time.sleep(dice.uniform(0, 0.03))  # after: other writers wait
        if dice.random() < 0.1:
            raise psycopg.Rollback(transaction)


def main(url: str, seed: int, pause_s: float) -> None:
    dice = random.Random(seed)
    while True:
        try:
            with psycopg.connect(url, autocommit=True, connect_timeout=2) as conn:
                while True:
                    write(conn, dice)
                    time.sleep(dice.uniform(0, 2 * pause_s))
        except (psycopg.Error, psycopg.Rollback):  # the latter when the server went away just then
            time.sleep(0.1)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
