"""Every setting, its meaning and its unit. Read once, at the door of each process, and handed inwards.

A setting `name` is read from the environment as `PRESAGE_NAME` (three well-known ones keep their own name), or from
`.env`.
`.env.example` mirrors this page; a test compares the two.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """What an operator may change."""

    model_config = SettingsConfigDict(
        env_prefix="PRESAGE_", env_file=".env", env_ignore_empty=True, extra="ignore", populate_by_name=True
    )

    database_url: SecretStr | None = Field(
        None,
        validation_alias="DATABASE_URL",
        description="PostgreSQL with TimescaleDB, as postgresql://…; empty: the embedded one is installed and started.",
    )
    database_read_url: SecretStr | None = Field(
        None,
        validation_alias="DATABASE_READ_URL",
        description="A read replica for the API's reads; empty: DATABASE_URL.",
    )
    redis_url: SecretStr | None = Field(
        None,
        validation_alias="REDIS_URL",
        description="A cache that the pipeline status reports on; nothing depends on it.",
    )
    data_dir: Path = Field(Path(".presage"), description="Where the embedded database and Dagster keep their files.")
    cache_dir: Path | None = Field(
        None, description="Where downloaded programs are kept; empty: ~/.cache/presage (as root: /var/cache/presage)."
    )
    log_format: Literal["json", "text"] = Field(
        "json", description="How every process writes its log: json, an object a line, or text, to be read."
    )

    gamma_url: str = Field("https://gamma-api.polymarket.com", description="The exchange's catalogue.")
    clob_url: str = Field("https://clob.polymarket.com", description="The exchange's order books over REST.")
    clob_socket_url: str = Field(
        "wss://ws-subscriptions-clob.polymarket.com/ws/market", description="The exchange's market channel."
    )
    data_api_url: str = Field("https://data-api.polymarket.com", description="The exchange's trades and positions.")
    source: str = Field(
        "exchange", description="Where the data comes from, shown wherever it is served: exchange, tape or simulated."
    )

    live_window_s: int = Field(720, ge=30, description="Seconds a live run holds the sockets before it hands over.")
    live_flush_ms: int = Field(150, ge=10, description="Milliseconds between two commits of the live feed.")
    live_ring_s: int = Field(15, ge=1, description="Seconds of messages a standby keeps, to replay when it takes over.")
    live_silence_s: float = Field(
        10.0, gt=0, description="Seconds an open socket may stay silent before it counts as dead."
    )
    live_buffer_mb: int = Field(
        256,
        ge=1,
        description="Megabytes of messages that a live run holds in memory while the database is away; beyond it a gap "
        "is recorded.",
    )
    live_assets_per_socket: int = Field(500, ge=1, description="Tokens subscribed on one socket of the exchange.")
    live_book_flush_ms: int = Field(300, ge=10, description="Milliseconds between two writes of one changed live book.")

    discovery_full_s: int = Field(600, ge=10, description="Seconds between two full walks of the open catalogue.")
    discovery_changes_s: int = Field(60, ge=10, description="Seconds between two looks for new and ended markets.")

    backfill_days: int = Field(
        0,
        ge=0,
        le=3650,
        description="Days before the first that a new installation fills in by itself, newest first: trades, "
        "settlements, signals. 0: none.",
    )

    chain_rpc_urls: SecretStr | None = Field(  # paid ones have their key in the address
        None,
        description="JSON-RPC endpoints of the settlement chain (Polygon), separated by commas, the preferred one "
        "first; empty: settlements are not indexed.",
    )
    chain_start_block: int | None = Field(
        None, ge=0, description="Block from which on settlements are indexed; empty: the head at the first start."
    )
    chain_contracts: Path | None = Field(
        None,
        description='Contracts to follow, as JSON: [{"name": "…", "address": "0x…", "kind": "exchange_v2"}, …]; empty: '
        "those of upstream/chain/contracts.py.",
    )
    settlement_window_s: int = Field(900, ge=30, description="Seconds a settlement run follows before it hands over.")
    settlement_poll_ms: int = Field(1000, ge=50, description="Milliseconds between two looks for a new block.")
    settlement_partition_blocks: int = Field(
        50_000, ge=100, description="Blocks of one partition of the settlements' back-fill."
    )

    quality_every_s: int = Field(
        120, ge=30, description="Seconds between two passes of the checks of data quality over what is new."
    )

    trades_retention_days: int = Field(
        3650,
        ge=4,
        description="Days of trades kept; candles are made again of the last three days' trades, so at least 4.",
    )
    books_retention_days: int = Field(90, ge=1, description="Days of book events and quotes kept.")
    settlements_retention_days: int = Field(
        30, ge=14, description="Days of settlements, wallets' fills and ledger entries kept."
    )
    stream_retention_h: int = Field(24, ge=1, description="Hours of stream events kept for resuming.")

    api_host: str = Field("127.0.0.1", description="Address the API listens on.")
    api_port: int = Field(8080, ge=1, le=65535, description="Port of the API.")
    api_workers: int = Field(2, ge=1, description="API processes.")
    api_pool: int = Field(8, ge=1, description="Database connections of one API process.")
    api_url: str = Field("http://127.0.0.1:8080", description="Where the site asks the API.")
    public_api_url: str = Field("", description="The API's address as users know it; empty: PRESAGE_API_URL.")
    api_statement_timeout_ms: int = Field(5000, ge=100, description="Milliseconds one query of the API may take.")
    metering_dir: Path | None = Field(
        None,
        description="Where the API's processes of a host share their counts of credits; empty: /dev/shm, or data_dir.",
    )
    registrations_a_day: int = Field(
        10, ge=1, description="API keys that one address may ask for in a day (UTC); an IPv6 /64 counts as one address."
    )
    trusted_proxies: str = Field(
        "",
        description="Addresses or networks, separated by commas, whose X-Forwarded-For is believed: 10.0.0.0/8.",
    )
    metrics_readers: str = Field(
        "",
        description="Addresses or networks, separated by commas, that may read /metrics: 10.0.0.0/8; empty: anyone.",
    )
    debug_token: SecretStr | None = Field(
        None, min_length=32, description="Opens /debug to whoever sends it as X-Debug-Token; empty: closed to all."
    )
    stream_poll_ms: int = Field(
        10, ge=5, description="Milliseconds between two looks for new stream events; less while they come."
    )
    stream_queue_bytes: int = Field(
        2 << 20, ge=65536, description="Bytes a lagging subscriber may owe before it is closed."
    )
    stream_origins: str = Field(
        "",
        description="Web pages that may open the stream, by their origin, separated by commas: https://a.example; "
        "empty: any. Clients other than browsers send no origin and are not asked.",
    )

    site_host: str = Field("127.0.0.1", description="Address the site listens on.")
    site_port: int = Field(8085, ge=1, le=65535, description="Port of the site.")
    public_site_url: str = Field(
        "", description="The site's address as users know it, for links; empty: as each request names it."
    )
    site_requests_a_second: int = Field(
        20, ge=1, description="Requests a second that one address may make of the site, over five seconds."
    )
    site_allowance_a_day: int = Field(
        300_000,
        ge=1,
        description="Bars of charts that one address is given in a day (UTC) without a key; a live page counts as 100.",
    )
    node_modules: Path = Field(Path("node_modules"), description="Where npm has put what the site's pages load.")
    mcp_hosts: str = Field(
        "",
        description="Host names under which MCP may be asked, separated by commas, beside localhost and that of "
        "PRESAGE_PUBLIC_SITE_URL: mcp.example.com.",
    )
    mcp_origins: str = Field(
        "",
        description="Web pages that may ask MCP, by their origin, separated by commas: https://a.example; empty: only "
        "the site's own. Clients other than browsers send no origin and are not asked.",
    )
    mcp_sessions: int = Field(1000, ge=1, description="Sessions over server-sent events open at once.")

    alert_webhook_url: SecretStr | None = Field(
        None,
        description="Gets failed runs and failing checks as JSON, its `text` as chat services show it; empty: none.",
    )
    alert_apprise_urls: SecretStr | None = Field(
        None,
        description="Who else is told, as Apprise names them, separated by spaces: ntfys://…; empty: nobody.",
    )
    alert_on: Literal["warn", "error"] = Field(
        "warn", description="Which failing checks are told of: warn, all; error, those alone that fail as errors."
    )
    alert_pause_s: int = Field(
        60, ge=0, description="Seconds between two messages to one receiver; what happens meanwhile is told together."
    )
    alert_repeat_h: float = Field(4.0, gt=0, description="Hours after which what is still wrong is told of again.")

    webhook_window_s: int = Field(720, ge=30, description="Seconds a delivery run delivers before it hands over.")
    webhook_poll_ms: int = Field(100, ge=10, description="Milliseconds between two looks for events to deliver.")
    webhook_timeout_s: float = Field(20.0, gt=0, le=60, description="Seconds a receiver of webhooks has to answer.")
    webhook_concurrency: int = Field(50, ge=1, le=200, description="Webhooks that are delivered to at the same time.")
    webhook_networks: str = Field(
        "",
        description="Networks that are not on the public internet and may be delivered to all the same, separated by "
        "commas: 10.1.2.0/24; empty: none.",
    )
    webhook_log_days: int = Field(30, ge=4, description="Days that a delivery is kept for after it is over.")

    exports_dir: Path | None = Field(
        None, description="Where exported days are written to and served from; empty: `exports` below data_dir."
    )
    exports_retention_days: int = Field(30, ge=1, description="Days of exports kept.")

    dagster_port: int = Field(3000, ge=1, le=65535, description="Port of Dagster's UI.")

    @property
    def exports_folder(self) -> Path:
        """Where exports are."""
        return self.exports_dir or self.data_dir / "exports"


@cache
def get() -> Settings:
    """The settings of this process, read once."""
    return Settings()


def example() -> str:
    """`.env.example`: every setting with its meaning and default, commented out."""
    lines = ["# Every setting of Presage, its meaning and its default. Copy to .env and change what you need.", ""]
    for name, field in Settings.model_fields.items():
        variable = str(field.validation_alias or f"PRESAGE_{name.upper()}")
        default = "" if field.default is None else field.default
        lines += [f"# {field.description}", f"#{variable}={default}", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(example(), end="")
