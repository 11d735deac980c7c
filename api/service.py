"""What endpoints work with, put together once in each process."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from api.data.cache import Cache
from api.data.cursor import Cursors
from api.data.lookup import Markets
from api.data.proxy import Exchange
from api.metering.keys import Keys
from api.metering.ledger_location import Opener
from api.metering.meter import Meter
from api.replay.sessions import Sessions
from api.server.address import Networks, Proxies
from api.server.connections import Connections
from api.server.host import Host
from api.stream.wallets import keep_following
from sql.queries import keys as queries

if TYPE_CHECKING:
    from collections.abc import Callable

    from api.data.pool import Pool
    from api.stream.hub import Hub
    from upstream.transport.addresses import Network


@dataclass
class Service:
    """Pools, and what is remembered on top of them."""

    reads: Pool
    writes: Pool
    hub: Hub
    host: Host = field(default_factory=Host)
    connections: Connections = field(default_factory=Connections)  # of the whole host in a server, as the ledger
    ledger: Opener = field(default_factory=Opener)  # of the whole host in a server, its own in a test
    redis_url: str | None = None
    debug_token: str | None = None  # opens /debug to who has it
    registrations_a_day: int = 10
    stream_origins: frozenset[str] = frozenset()  # pages that may open the stream; none listed: any may
    proxies: Proxies = field(default_factory=Proxies)
    metrics_readers: Networks = field(default_factory=Networks)  # none given: anyone
    webhook_networks: tuple[Network, ...] = ()  # that may be delivered to beside the public internet
    exports: Path = Path("exports")
    clock: Callable[[], float] = time.time
    cache: Cache = field(default_factory=Cache)
    exchange: Exchange = field(default_factory=Exchange)
    replays: Sessions = field(default_factory=Sessions)

    def __post_init__(self) -> None:
        """Build what rests on the pools."""
        self.keys = Keys(self.writes, self.ledger)  # the primary: a replica may not yet know a new key
        self.meter = Meter(self.writes, self.ledger, self.clock, self.host.counts)
        self.markets = Markets(self.reads)
        self.cursors = Cursors(self._cursor_secret)
        self.hub.keep_following = partial(keep_following, self.writes)

    def close(self) -> None:
        """Give back what this process holds. For when all requests are answered."""
        self.hub.end()
        self.connections.leave()
        if self.ledger.opened:
            self.meter.leases.close()

    def _cursor_secret(self) -> str:
        return str(self.reads.read(queries.cursor_secret))
