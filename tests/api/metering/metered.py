"""Helpers of the metering tests: usage, charging, and several hosts on one database."""

from __future__ import annotations

import datetime as dt
import time

from api.metering import keys
from api.metering.credit_ledger import CreditLedger
from api.metering.ledger_location import LazyLedger
from api.metering.meter import CannotPay, Meter, Month
from sql.queries import keys as queries
from tests.api.conftest import OneConnection


def used(conn, key, month=None):
    begin = dt.datetime.fromtimestamp((month or Month.of(time.time())).first, dt.UTC)
    row = conn.execute(
        "select used from credit_usage join api_keys using (key_id) where key_hash = %s and month = %s",
        [keys.digest(key), begin],
    ).fetchone()
    return row[0] if row else 0


def known(conn, meter, key):
    """Return the key as known to a worker with this meter's ledger."""
    *limits, account = queries.by_hash(conn, key_hash=keys.digest(key))
    return keys.Key(*limits, meter._ledger().generation(key_id(conn, key)), account)


def key_id(conn, key):
    return conn.execute("select key_id from api_keys where key_hash = %s", [keys.digest(key)]).fetchone()[0]


def pays(meter, key, cost=1):
    try:
        meter.admit(key, cost)
    except CannotPay:
        return False
    return True


def hosts(conn):
    """Return a factory of hosts: meters with separate ledgers on the same database.

    A host does not top up its leases unless `tops_up`; then it does so at once, as one connection is for one thread.
    """

    def made(pool=None, *, buckets=4, clock=time.time, tops_up=False):
        ledger = CreditLedger.private(buckets)
        meter = Meter(pool or OneConnection(conn), LazyLedger(lambda: ledger), clock)
        meter.leases.in_background = lambda call: call() if tops_up else None
        return meter

    return made
