"""Live feeds of Kalshi against its sandbox and a database of their own."""

from cryptography.hazmat.primitives.serialization import load_pem_private_key

from orchestration.ingest.exchanges.kalshi import KalshiClient
from orchestration.markets import catalogue
from tests.orchestration.ingest.live_world import World
from tests.soak import kalshi_truth
from tests.soak.truth import compare
from upstream.kalshi.rest.client import Kalshi
from upstream.kalshi.rest.listings import KalshiListings
from upstream.kalshi.signing import Signer
from upstream.transport.http import Client

BOOKS = """
select t.token_id, b.verified, b.bid_prices, b.bid_sizes, b.ask_prices, b.ask_sizes
from live_books b join tokens t using (market_key, outcome)
"""
IN_GAP = """
select exists (
    select from coverage_gaps g left join markets m using (market_key)
    where g.exchange = 'kalshi' and g.kind = %s and coalesce(m.market_id = %s, true)
        and g.from_ts <= to_timestamp(%s / 1000.0) and coalesce(g.to_ts, 'infinity') >= to_timestamp(%s / 1000.0)
)
"""


class KalshiWorld(World):
    """A sandbox Kalshi, a database with its markets, and feeds between them."""

    family = "kalshi"

    def __init__(self, sandbox, url, log):
        made = sandbox.keys.create("ed25519")
        self.key_id, self.key = made["api_key_id"], made["private_key"].encode()
        self.key_file = log.with_suffix(".pem")
        self.key_file.write_bytes(self.key)
        self.key_file.chmod(0o600)
        super().__init__(sandbox, url, log)

    def exchange(self):
        signer = Signer(self.key_id, load_pem_private_key(self.key, None))
        return KalshiClient(self.sandbox.rest_url, self.sandbox.socket_url, signer, "simulated")

    def discover(self):
        with Client() as client:
            listings = KalshiListings(Kalshi(client, self.sandbox.rest_url))
            for page in listings.open_pages():
                catalogue.store(self.conn, [item.row("simulated") for item in page.items], cause="discovered")

    def environment(self):
        return {
            "PRESAGE_KALSHI_URL": self.sandbox.rest_url,
            "PRESAGE_KALSHI_SOCKET_URL": self.sandbox.socket_url,
            "PRESAGE_KALSHI_KEY_ID": self.key_id,
            "PRESAGE_KALSHI_PRIVATE_KEY_FILE": str(self.key_file),
            "PRESAGE_SOURCE": "simulated",
        }

    def followed(self):
        """Return the tickers of the markets that are stored."""
        return {row[0] for row in self.conn.execute("select market_id from markets where exchange = 'kalshi'")}

    def sent(self, from_ms, to_ms):
        """Return what the exchange's log says of stored markets: trades of YES, and both outcomes' levels."""
        self.sandbox.call(self.sandbox.log.flush)
        return kalshi_truth.sent(self.log, self.followed(), from_ms=from_ms, to_ms=to_ms)

    def compared(self, from_ms, to_ms):
        """Return what is lost and what is doubled or invented in a span, by kind."""
        return compare(self.sent(from_ms, to_ms), kalshi_truth.stored(self.conn, from_ms=from_ms, to_ms=to_ms))

    def differences(self, from_ms, to_ms, least=20):
        found = self.compared(from_ms, to_ms)
        assert all(kind.compared > least for kind in found.values()), found
        return {name: (dict(kind.lost), dict(kind.doubled)) for name, kind in found.items()}

    def books(self):
        """Return the stored live books that are shown, by token: bids and asks, best first."""
        return {
            token: (list(zip(bids, bid_sizes, strict=True)), list(zip(asks, ask_sizes, strict=True)))
            for token, verified, bids, bid_sizes, asks, ask_sizes in self.conn.execute(BOOKS)
            if verified
        }

    def is_in_gap(self, kind, token, ts_ms):
        """Return whether a gap of a kind, of a token's market or of all, covers an instant."""
        return self.conn.execute(IN_GAP, [kind, token.rpartition(":")[0], ts_ms, ts_ms]).fetchone()[0]
