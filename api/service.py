"""What endpoints work with, put together once in each process."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from api.cache import Cache
from api.cursor import Cursors
from api.host import Host
from api.keys import Keys
from api.lookup import Markets
from api.metering import Meter
from api.proxy import Exchange
from api.slots import Slots
from sql.queries import keys as queries

if TYPE_CHECKING:
    from api.pool import Pool
    from api.stream.hub import Hub


@dataclass
class Service:
    """Pools, and what is remembered on top of them."""

    reads: Pool
    writes: Pool
    hub: Hub
    host: Host = field(
        default_factory=lambda: Host(slots=Slots(256))
    )  # of the whole host in a server, its own in a test
    redis_url: str | None = None
    debug_token: str | None = None  # opens /debug to who has it
    cache: Cache = field(default_factory=Cache)
    exchange: Exchange = field(default_factory=Exchange)

    def __post_init__(self) -> None:
        """Build what rests on the pools."""
        self.keys = Keys(self.writes, self.host.keys_ended)  # the primary: a replica may not yet know a new key
        self.meter = Meter(self.writes, self.host.slots)
        self.markets = Markets(self.reads)
        self.cursors = Cursors(self._cursor_secret)

    def _cursor_secret(self) -> str:
        return str(self.reads.read(queries.cursor_secret))
