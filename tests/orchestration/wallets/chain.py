"""A chain made of rows: as the settlement writer would have written them, with `capture` called as it does."""

from __future__ import annotations

import datetime as dt
import hashlib
import json

from psycopg.types.json import Jsonb

from orchestration.wallets import capture
from sql.database import micro
from sql.queries import wallets as queries

START = dt.datetime(2026, 11, 1, tzinfo=dt.UTC)
EXCHANGE = b"\xee" * 20


def address(name):
    return hashlib.sha256(name.encode()).digest()[:20]


def pnl(conn, wallet):
    return json.loads(queries.pnl(conn, wallet=address(wallet)))


class Chain:
    """Blocks 15 s apart, each committed with its derived rows."""

    def __init__(self, conn, start=START):
        self.conn, self.start = conn, start
        self.contract = conn.execute(
            "insert into chain_contracts (address, name) values (%s, 'exchange') returning contract_key", [EXCHANGE]
        ).fetchone()[0]
        self.keys = {}

    def key(self, token_id):
        if token_id not in self.keys:
            self.conn.execute("insert into chain_tokens (token_id) values (%s) on conflict do nothing", [token_id])
            found = self.conn.execute("select token_key from chain_tokens where token_id = %s", [token_id])
            self.keys[token_id] = found.fetchone()[0]
        return self.keys[token_id]

    def ts(self, block):
        return self.start + dt.timedelta(seconds=15 * block)

    def block(self, number, *matches, entries=(), live=True, salt=""):
        """Write a block of matches and ledger entries; return the messages."""
        with self.conn.transaction():
            self.conn.execute(
                "insert into chain_blocks (number, hash, parent, ts, logs) values (%s, %s, %s, %s, %s)",
                [number, self.hash(number, salt), self.hash(number - 1, salt), self.ts(number), 0],
            )
            log = 0
            for match in matches:
                log = self._match(number, log, match)
            for entry in entries:
                self._entry(number, log, entry)
                log += 1
            return capture.written(self.conn, [number], live=live)

    def remove(self, *numbers):
        """Delete blocks, as after a reorganisation; return the messages."""
        with self.conn.transaction():
            told = capture.withdrawn(self.conn, list(numbers))
            for table in ("settlements", "wallet_fills", "ledger_entries"):
                self.conn.execute(f"delete from {table} where block_number = any(%s)", [list(numbers)])
            self.conn.execute("delete from chain_blocks where number = any(%s)", [list(numbers)])
        return told

    def head(self, head, finalized=None):
        finalized = head if finalized is None else finalized
        self.conn.execute(
            "insert into chain_heads (feed, head, finalized, indexed) values ('settlement', %s, %s, %s)"
            " on conflict (feed) do update set head = excluded.head, finalized = excluded.finalized,"
            " indexed = excluded.indexed",
            [head, finalized, head],
        )

    @staticmethod
    def hash(number, salt=""):
        return hashlib.sha256(f"{number}{salt}".encode()).digest()

    def _match(self, block, log, match):
        """Add one maker's row, and the taker's own when it has one: {token, price, size, maker, taker, side, fee}."""
        price = match["price"]
        size = micro(match["size"])
        value = (
            micro(match["value"]) if "value" in match else 0 if price is None else round(micro(price) * size / 10**6)
        )
        fee = micro(match.get("fee", 0))
        alone = match.get("alone", False)
        maker, taker = address(match["maker"]), address(match["taker"])
        side = match.get("side", 1)  # the maker's
        row = {
            "ts": self.ts(block),
            "block_number": block,
            "token_key": self.key(match["token"]),
            "tx_hash": self.hash(block, f"tx {log}"),
            "contract_key": self.contract,
            "price": None if price is None else micro(price),
            "size": size,
            "value_usd": value,
        }
        makers = {**row, "log_index": log, "maker": maker, "taker": taker, "side": side, "fee_usd": 0}
        takers = {**row, "log_index": log + 1, "maker": taker, "taker": EXCHANGE, "side": -side, "fee_usd": fee}
        if alone:
            self._insert("settlements", {**makers, "match_index": None, "is_taker_order": False, "counted": True})
            self._fill(makers, maker, side, is_taker=False)
            self._fill({**makers, "fee_usd": fee}, taker, -side, is_taker=True)
            return log + 1
        match_index = log + 1
        self._insert("settlements", {**makers, "match_index": match_index, "is_taker_order": False, "counted": False})
        self._insert("settlements", {**takers, "match_index": match_index, "is_taker_order": True, "counted": True})
        self._fill(makers, maker, side, is_taker=False)
        self._fill(takers, taker, -side, is_taker=True)
        return log + 2

    def _fill(self, row, wallet, side, *, is_taker):
        names = ("ts", "block_number", "log_index", "token_key", "price", "size", "value_usd", "fee_usd")
        self._insert(
            "wallet_fills",
            {**{name: row[name] for name in names}, "wallet": wallet, "side": side, "is_taker": is_taker},
        )

    def _entry(self, block, log, entry):
        """Add an entry: {kind, wallet, amount, tokens?, token?, condition?, counterparty?}."""
        detail = dict(entry.get("detail", {}))
        if "tokens" in entry:
            detail["tokens"] = [[token, micro(shares)] for token, shares in entry["tokens"]]
        self._insert(
            "ledger_entries",
            {
                "ts": self.ts(block),
                "block_number": block,
                "log_index": log,
                "entry": entry.get("entry", 0),
                "kind": entry["kind"],
                "wallet": address(entry["wallet"]) if entry.get("wallet") else None,
                "counterparty": address(entry["counterparty"]) if entry.get("counterparty") else None,
                "condition_id": entry.get("condition"),
                "token_key": self.key(entry["token"]) if entry.get("token") else None,
                "amount": micro(entry.get("amount", 0)),
                "tx_hash": self.hash(block, f"tx {log}"),
                "contract_key": self.contract,
                "detail": detail,
            },
        )

    def _insert(self, table, row):
        values = [Jsonb(value) if isinstance(value, dict) else value for value in row.values()]
        self.conn.execute(
            f"insert into {table} ({', '.join(row)}) values ({', '.join(['%s'] * len(row))})",
            values,
        )
