"""Starts the service of a worker process, as the settings describe it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from psycopg.conninfo import conninfo_to_dict

from api.data import exported, waiting
from api.data.lake import LakeFiles
from api.data.pool import Pool, PoolCounters
from api.data.proxy import ExchangeProxy
from api.data.replica import ReplicaReads
from api.metering import ledger_location
from api.metering.key_changes import KeyChanges
from api.metering.ledger_location import LazyLedger
from api.metering.mail import MailServer
from api.metrics.counts import Counter
from api.server import connections, host, worker
from api.server.address import Networks, Proxies
from api.server.connections import Connections
from api.service import Service
from api.stream.hub import StreamHub
from config import settings, webhook_keys
from sql import database
from sql.webhook_secrets import SecretBox
from upstream.transport.addresses import networks

if TYPE_CHECKING:
    from config.settings import Settings


def start_service() -> Service:
    """Return this process's service, which ends with the worker."""
    waiting.install()
    service = build_service(settings.get())
    service.host.counts.join()
    changes = KeyChanges(service.writes.url, service.keys, service.keys.end)
    changes.start()
    service.audit.start()
    worker.on_draining.append(service.drain)
    worker.on_shutdown += [service.hub.stop, service.replays.stop]
    worker.on_drained += [changes.stop, service.audit.stop, service.close]
    return service


def build_service(given: Settings) -> Service:
    """Return the service that the settings describe."""
    if given.database_url is None:
        raise LookupError("DATABASE_URL is not set: `presage up` sets it for the embedded database")
    url = given.database_url.get_secret_value()
    read_url = (given.database_read_url or given.database_url).get_secret_value()
    limits: dict[str, Any] = {
        "statement_timeout": given.api_statement_timeout_ms,
        "idle_in_transaction_session_timeout": 10_000,
    }
    read_only = {**limits, "default_transaction_read_only": "on"}
    counts = host.shared.counts
    if conninfo_to_dict(url).get("target_session_attrs") == "read-write":
        raise ValueError("DATABASE_URL: target_session_attrs=read-write refuses sessions that only read: use primary")
    reads_busy = PoolCounters(counts, Counter.READS_BUSY)
    primary = Pool(url, given.api_pool, read_only, of_the_primary=True, counters=reads_busy)
    reads: Pool | ReplicaReads = primary
    if read_url != url:
        replica = Pool(read_url, given.api_pool, read_only, counters=reads_busy)
        reads = ReplicaReads(replica, primary, max_lag_s=given.max_replica_lag_s)
    # The primary: a client may resume from what it has received of another host, which a replica may not have yet.
    events = Pool(url, 3, read_only, of_the_primary=True, counters=PoolCounters(counts, Counter.EVENTS_BUSY))
    writes_busy = PoolCounters(counts, Counter.WRITES_BUSY)
    writes = Pool(url, max(2, given.api_pool // 4), limits, of_the_primary=True, counters=writes_busy)
    # Look-ups of keys that may be unknown, and registrations: they wait for each other, not customers for them.
    unauthenticated_busy = PoolCounters(counts, Counter.UNAUTHENTICATED_BUSY)
    unauthenticated = Pool(url, 2, limits, wait_s=0.5, of_the_primary=True, counters=unauthenticated_busy)
    ledger = LazyLedger(lambda: ledger_location.open_host_ledger(writes, ledger_location.folder(given)))
    return Service(
        reads=reads,
        writes=writes,
        hub=StreamHub(
            events, ledger.ended, poll_ms=given.stream_poll_ms, queue_bytes=given.stream_queue_bytes, counts=counts
        ),
        host=host.shared,
        connections=Connections.at(
            lambda: writes.read(
                lambda conn: ledger_location.path(conn, ledger_location.folder(given), connections.FILE_KIND)
            )
        ),
        ledger=ledger,
        stream_origins=frozenset(given.stream_origins.lower().replace(",", " ").split()),
        unauthenticated_pool=unauthenticated,
        unauthenticated_requests_a_minute=given.unauthenticated_requests_a_minute,
        pause=time.sleep,
        # Of its own: in a flood of requests without a valid key, theirs are busy, and customers' are not for this.
        audit_connection=lambda: database.connect(url, autocommit=True, name="presage api audit", **limits),
        registrations_a_day=given.registrations_a_day,
        mail=_mail_server(given),
        site_url=given.public_site_url,
        proxies=Proxies(given.trusted_proxies, given.site_token.get_secret_value() if given.site_token else ""),
        metrics_readers=Networks(given.metrics_readers),
        redis_url=given.redis_url.get_secret_value() if given.redis_url else None,
        database_disk_gb=given.database_disk_gb,
        debug_token=given.debug_token.get_secret_value() if given.debug_token else None,
        webhook_networks=networks(given.webhook_networks),
        webhook_secrets=SecretBox(lambda: webhook_keys.read(given)),
        lake=LakeFiles(given) if given.lake else None,
        exports=exported.of(given),
        exchange=ExchangeProxy(given.gamma_url, given.data_api_url, source=given.source),
    )


def _mail_server(given: Settings) -> MailServer | None:
    if given.smtp_url is None:
        return None
    if not given.public_site_url:
        raise ValueError("PRESAGE_PUBLIC_SITE_URL: needed for the links in mails, with PRESAGE_SMTP_URL")
    return MailServer.of(given.smtp_url.get_secret_value(), given.mail_from)
