"""The service object: everything that endpoints share, created once per process."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from api.data.cache import Cache
from api.data.cursor import Cursors
from api.data.expired import Expired
from api.data.expired_trades import ExpiredTrades
from api.data.exported import ExportFolder
from api.data.lookup import MarketLookup
from api.data.proxy import ExchangeProxy
from api.metering.audit_counts import AuditCounts
from api.metering.keys import Keys
from api.metering.ledger_location import LazyLedger
from api.metering.meter import Meter
from api.metering.recovery import Recovery
from api.metering.unauthenticated import UnauthenticatedRequests
from api.metrics.counts import FAILED_KEYS
from api.replay.expired_books import ExpiredBooks
from api.replay.sessions import ReplaySessions
from api.server.address import SITE_TOKEN, Networks, Proxies
from api.server.connections import Connections
from api.server.host import Host
from api.stream.wallets import keep_following
from sql.queries import cursors as queries
from sql.webhook_secrets import SecretBox

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    import falcon

    from api.data.exported import ExportFiles
    from api.data.lake import LakeFiles
    from api.data.pool import Connection, Pool
    from api.data.replica import ReplicaReads
    from api.metering.keys import Failure
    from api.metering.mail import MailServer
    from api.stream.hub import StreamHub
    from upstream.transport.addresses import Network


@dataclass
class Service:
    """The database pools, and the caches, meter and streams that use them."""

    reads: Pool | ReplicaReads
    writes: Pool
    hub: StreamHub
    host: Host = field(default_factory=Host)
    connections: Connections = field(default_factory=Connections)  # in a server shared by the host, as the ledger
    ledger: LazyLedger = field(default_factory=LazyLedger)  # in a server shared by the host, private in a test
    redis_url: str | None = None
    database_disk_gb: float | None = None  # of the database server's disk, in GiB; None: as far as it can be measured
    debug_token: str | None = None  # gives access to /debug
    unauthenticated_pool: Pool | None = None  # for keys that may be unknown, and for registrations; None: as `writes`
    unauthenticated_requests_a_minute: int | None = (
        None  # requests without a valid key, of one address; None: any number
    )
    pause: Callable[[float], object] = lambda _: None  # delays refusals of requests without a valid key
    audit_connection: Callable[[], AbstractContextManager[Connection]] | None = None  # None: one of `writes`
    registrations_a_day: int = 10
    mail: MailServer | None = None  # None: no mail is sent
    site_url: str = ""  # of the links in mails
    stream_origins: frozenset[str] = frozenset()  # origins that may open the stream; empty: any
    proxies: Proxies = field(default_factory=Proxies)
    metrics_readers: Networks = field(default_factory=Networks)  # empty: anyone
    webhook_networks: tuple[Network, ...] = ()  # allowed receivers besides the public internet
    webhook_secrets: SecretBox = field(default_factory=SecretBox)
    lake: LakeFiles | None = None  # what has expired in the database; None: there is no lake
    exports: ExportFiles = field(default_factory=lambda: ExportFolder(Path("exports")))
    clock: Callable[[], float] = time.time
    cache: Cache = field(default_factory=Cache)
    exchange: ExchangeProxy = field(default_factory=ExchangeProxy)
    replays: ReplaySessions = field(default_factory=ReplaySessions)
    draining: bool = False  # it is about to stop

    def __post_init__(self) -> None:
        """Create the objects that depend on the pools."""
        self.unauthenticated = UnauthenticatedRequests(
            self.host.unauthenticated, self.unauthenticated_requests_a_minute, self.pause, self.host.counts
        )
        # The primary: a replica may not have a new key yet.
        self.keys = Keys(
            self.writes,
            self.ledger,
            unauthenticated=self.unauthenticated_pool,
            admit=self.admit_unauthenticated,
            failed=self.key_failed,
        )
        self.audit = AuditCounts(self.audit_connection or self.writes.connection, lambda: self.clock())  # noqa: PLW0108 (a test sets it later)
        self.meter = Meter(self.writes, self.ledger, self.clock, self.host.counts)
        self.recovery: Recovery | None = None
        if self.mail is not None:
            pool = self.unauthenticated_pool or self.writes
            self.recovery = Recovery(pool, self.mail, self.site_url, lambda: self.clock())  # noqa: PLW0108 (a test sets it later)
        self.markets = MarketLookup(self.reads)
        expired = Expired(self.reads, self.lake)
        self.expired_trades, self.expired_books = ExpiredTrades(expired), ExpiredBooks(expired)
        self.cursors = Cursors(self._cursor_secrets)
        self.hub.keep_following = partial(keep_following, self.writes)

    def origin(self, req: falcon.Request) -> str:
        """Return a request's client address; IPv6 addresses are grouped by site (/64)."""
        return self.proxies.origin(req.remote_addr or "", req.get_header("X-Forwarded-For"), req.get_header(SITE_TOKEN))

    def admit_unauthenticated(self, req: falcon.Request) -> None:
        """Charge a request without a valid key to its address."""
        self.unauthenticated.admit(self.origin(req))

    def key_failed(self, req: falcon.Request, failure: Failure) -> None:
        """Count a request with a key that is not valid."""
        self.host.counts.add(FAILED_KEYS[failure.result])
        self.audit.count(self.origin(req), "key.failed", *failure)

    def drain(self) -> None:
        """Have the health check fail, so that load balancers choose other servers."""
        self.draining = True

    def close(self) -> None:
        """Release this process's shared resources. Call after all requests are answered."""
        self.hub.end()
        self.connections.leave()
        if self.ledger.opened:
            self.meter.leases.close()

    def _cursor_secrets(self) -> list[bytes]:
        # The primary: a cursor may be of a secret that a replica has not yet.
        return self.writes.read(lambda conn: [secret.encode() for (secret,) in queries.secrets(conn)])
