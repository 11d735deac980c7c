"""Settings: each with its description and unit, read once when a process starts and passed to the code that needs it.

A setting `name` is read from the environment as `PRESAGE_NAME` (three well-known ones keep their own name), or from
`.env`.

`.env.example` mirrors this module; a test compares the two.
"""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from config import hosts
from config.setting_types import (
    Bucket,
    DatabaseUrl,
    EncryptionKeys,
    Exchanges,
    FolderOrBucket,
    Line,
    Roles,
    Url,
    Urls,
    Word,
    listed,
)

DAGSTER_USER = "presage"
MAX_SHARDS_BY_CORES = 8  # each takes eight database connections


class Settings(BaseSettings):
    """All settings of the service, read from the environment or `.env`."""

    model_config = SettingsConfigDict(
        env_prefix="PRESAGE_",
        env_file=".env",
        env_ignore_empty=True,
        extra="ignore",
        populate_by_name=True,
        hide_input_in_errors=True,  # a secret that is too short is still not for the log
    )

    database_url: DatabaseUrl | None = Field(
        None,
        validation_alias="DATABASE_URL",
        description="PostgreSQL with TimescaleDB, as postgresql://…; empty: the embedded one is installed and started.",
    )
    pipeline_database_url: DatabaseUrl | None = Field(
        None,
        description="The same database by the pipeline's own login, with a user and a password of your choice: "
        "`presage migrate` and `presage up` create it; empty: as DATABASE_URL. The embedded database has its own.",
    )
    api_database_url: DatabaseUrl | None = Field(None, description="The same for the API.")
    site_database_url: DatabaseUrl | None = Field(None, description="The same for the site.")
    database_read_url: DatabaseUrl | None = Field(
        None,
        validation_alias="DATABASE_READ_URL",
        description="A read replica for the API's reads; empty: DATABASE_URL.",
    )
    max_replica_lag_s: float = Field(
        5.0,
        gt=0,
        description="Seconds that the replica of DATABASE_READ_URL may be behind; beyond them DATABASE_URL is read.",
    )
    redis_url: Url | None = Field(
        None,
        validation_alias="REDIS_URL",
        description="A cache that the pipeline status reports on; nothing depends on it.",
    )
    roles: Roles = Field(
        "",
        description="Roles of this host, separated by commas: database (the embedded one), dagster, runs, feed, api, "
        "site; empty: all but runs and feed, as on a single machine Dagster runs everything. `presage up --role` "
        "overrides it.",
    )
    host_name: str = Field(
        "",
        max_length=255,
        description="Name of this host in leases, different from that of every other; empty: as the machine calls "
        "itself.",
    )
    max_runs: int = Field(
        32, ge=1, le=500, description="Runs of Dagster that a host with the role runs executes at once."
    )
    data_dir: Path = Field(Path(".presage"), description="Where the embedded database and Dagster keep their files.")
    cache_dir: Path | None = Field(
        None, description="Where downloaded programs are kept; empty: ~/.cache/presage (as root: /var/cache/presage)."
    )
    log_format: Literal["json", "text"] = Field(
        "json", description="Log format of every process: json, one object per line, or text, for reading."
    )

    exchanges: Exchanges = Field(
        "polymarket",
        description="Exchanges whose markets are read, separated by commas: polymarket, kalshi. Kalshi's live feed "
        "needs its key, too; Polymarket cannot be left out.",
    )
    gamma_url: str = Field("https://gamma-api.polymarket.com", description="The exchange's catalogue.")
    clob_url: str = Field("https://clob.polymarket.com", description="The exchange's order books over REST.")
    clob_socket_url: str = Field(
        "wss://ws-subscriptions-clob.polymarket.com/ws/market", description="The exchange's market channel."
    )
    data_api_url: str = Field("https://data-api.polymarket.com", description="The exchange's trades and positions.")
    kalshi_url: str = Field("https://external-api.kalshi.com/trade-api/v2", description="Kalshi's REST API.")
    kalshi_socket_url: str = Field(
        "wss://external-api-ws.kalshi.com/trade-api/ws/v2", description="Kalshi's WebSocket API."
    )
    kalshi_key_id: SecretStr | None = Field(
        None,
        description="Id of an API key of Kalshi, for its live feed; empty: what needs no key can be read.",
    )
    kalshi_private_key_file: Path | None = Field(
        None,
        description="File with the private key of PRESAGE_KALSHI_KEY_ID, RSA or Ed25519, as PEM, that other users of "
        "this machine cannot read.",
    )
    source: str = Field(
        "exchange", description="Where the data comes from, shown wherever it is served: exchange, tape or simulated."
    )

    live_shards: int = Field(
        0,
        ge=0,
        le=64,
        description="Parts into which the live feed's markets are divided, each with two runs of its own; 0: one "
        "per two cores, at most 8. `presage set live_shards` overrides it while it runs.",
    )
    live_window_s: int = Field(720, ge=30, description="Seconds until a live run hands over.")
    live_flush_ms: int = Field(
        0,
        ge=0,
        description="Milliseconds between two commits of a shard; 0: 150, and from three shards on 75 for each of "
        "them, at most 500.",
    )
    live_ring_s: int = Field(15, ge=1, description="Seconds of messages that a standby keeps for its takeover.")
    live_standby_defers: bool = Field(
        default=True,
        description="Whether a standby leaves messages unparsed until it needs them: it costs a third, and takes "
        "over a second or two later.",
    )
    live_silence_s: float = Field(
        10.0, gt=0, description="Seconds without a message after which an open socket counts as dead."
    )
    live_buffer_mb: int = Field(
        0,
        ge=0,
        description="Megabytes of messages that a live run holds in memory while the database is away, half of it at "
        "most left unparsed by a standby; beyond it a gap is recorded. 0: 256, and 2 for each 1,000 tokens followed.",
    )
    live_assets_per_socket: int = Field(500, ge=1, description="Tokens subscribed on one socket of the exchange.")
    live_book_flush_ms: int = Field(
        120_000,
        ge=10,
        le=300_000,
        description="Milliseconds after which a changed live book is written; until then, readers add the changes.",
    )

    discovery_full_s: int = Field(600, ge=10, description="Seconds between two full scans of the open catalogue.")
    discovery_changes_s: int = Field(60, ge=10, description="Seconds between two checks for new and ended markets.")

    backfill_days: int = Field(
        0,
        ge=0,
        le=3650,
        description="Days before its start that a new installation backfills, newest first: trades, settlements, "
        "signals. 0: none.",
    )

    chain_rpc_urls: Urls | None = Field(  # commercial endpoints have their key in the address
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
    settlement_window_s: int = Field(900, ge=30, description="Seconds until a settlement run hands over.")
    settlement_poll_ms: int = Field(1000, ge=50, description="Milliseconds between two checks for a new block.")
    settlement_partition_blocks: int = Field(
        50_000, ge=100, description="Blocks of one partition of the settlements' backfill."
    )

    quality_every_s: int = Field(120, ge=30, description="Seconds between two data-quality passes over new rows.")

    trades_retention_days: int = Field(
        3650,
        ge=4,
        description="Days that trades are kept; candles are recomputed from the last three days', so at least 4.",
    )
    books_retention_days: int = Field(90, ge=1, description="Days that book events and quotes are kept.")
    settlements_retention_days: int = Field(
        30, ge=14, description="Days that settlements, wallets' fills and ledger entries are kept."
    )
    audit_retention_days: int = Field(
        400, ge=30, description="Days that the audit trail is kept; it is dropped by whole months of 30 days."
    )
    database_disk_gb: float | None = Field(
        None,
        gt=0,
        description="Size of the database server's disk in GiB, for the forecasts of alerts and presage doctor;"
        " empty: measured where the server's files are on this machine.",
    )
    backup_repository: FolderOrBucket = Field(
        "",
        description="Where base backups and the write-ahead log of the embedded database are kept, for recovery to any "
        "moment: an absolute folder, best on another machine's disk, or s3://bucket/path; empty: none are made.",
    )
    backup_passphrase: Line | None = Field(
        None,
        min_length=16,
        description="Encrypts that repository: 16 characters or more. Without it nothing can be restored: keep a copy "
        "elsewhere. Empty: not encrypted. It cannot be changed for a repository in use.",
    )
    backup_every_h: float = Field(
        24.0, gt=0, description="Hours between two base backups, of what has changed since the one before."
    )
    backup_full_every_days: float = Field(7.0, gt=0, description="Days between two base backups of everything.")
    backup_fulls_kept: int = Field(
        2,
        ge=1,
        description="Full base backups that are kept, with those that rest on them and the write-ahead log since the "
        "oldest of them.",
    )
    backup_s3_endpoint: Word = Field(
        "s3.amazonaws.com", description="Host of the object store of PRESAGE_BACKUP_REPOSITORY, by TLS: host[:port]."
    )
    backup_s3_region: Word = Field("us-east-1", description="Its region.")
    backup_s3_key: Line | None = Field(None, description="The access key for it.")
    backup_s3_secret: Line | None = Field(None, description="The secret of that access key.")
    backup_s3_ca_file: Path | None = Field(
        None, description="Certificates that sign the object store's, as PEM; empty: this machine's."
    )
    lake: FolderOrBucket = Field(
        "",
        description="Where days that are over are also kept, as Iceberg tables: an absolute folder or "
        "s3://bucket/path; empty: nowhere.",
    )
    lake_s3_endpoint: str = Field("", description="URL of the object store of PRESAGE_LAKE; empty: Amazon's.")
    lake_s3_region: str = Field("us-east-1", description="Its region.")
    lake_s3_key: SecretStr | None = Field(None, description="The access key for it.")
    lake_s3_secret: SecretStr | None = Field(None, description="The secret of that access key.")
    stream_retention_h: int = Field(24, ge=1, description="Hours that stream events are kept for resuming.")

    api_host: str = Field("127.0.0.1", description="Address the API listens on.")
    api_port: int = Field(8080, ge=1, le=65535, description="Port of the API.")
    api_workers: int = Field(2, ge=1, description="API processes.")
    api_drain_s: float = Field(
        0.0,
        ge=0,
        le=300,
        description="Seconds for which a stopping API still serves while /health answers 503, so that a load balancer "
        "chooses another.",
    )
    api_pool: int = Field(8, ge=1, description="Database connections of one API process.")
    api_url: str = Field("http://127.0.0.1:8080", description="The API's address for the site's own requests.")
    public_api_url: str = Field("", description="The API's address as users know it; empty: PRESAGE_API_URL.")
    api_statement_timeout_ms: int = Field(5000, ge=100, description="Milliseconds one query of the API may take.")
    metering_dir: Path | None = Field(
        None,
        description="Where the API processes of a host share their credit counts; empty: /dev/shm, or data_dir.",
    )
    registrations_a_day: int = Field(
        10, ge=1, description="API keys that one address may register per day (UTC); an IPv6 /64 counts as one address."
    )
    unauthenticated_requests_a_minute: int = Field(
        60,
        ge=1,
        le=1_000_000,
        description="Requests without a valid API key that one address may send per minute, a sixth of them at "
        "once, registrations included; an "
        "IPv6 /64 counts as one address.",
    )
    smtp_url: Url | None = Field(
        None,
        description="SMTP server for links that verify addresses and recover keys: smtps://user:password@host, "
        "smtp+starttls://user:password@host:587, or smtp://host in a trusted network; empty: no mail is sent. "
        "Needs PRESAGE_MAIL_FROM and PRESAGE_PUBLIC_SITE_URL.",
    )
    mail_from: str = Field("", description="Sender of mail: Presage <presage@example.com>.")
    trusted_proxies: str = Field(
        "",
        description="Addresses or networks, separated by commas, whose X-Forwarded-For is trusted: 10.0.0.0/8.",
    )
    site_token: SecretStr | None = Field(
        None,
        min_length=32,
        description="Token by which the API knows the site, to believe it its visitors' addresses; empty: the site's "
        "address must be in PRESAGE_TRUSTED_PROXIES. `presage up` generates one at each start.",
    )
    metrics_readers: str = Field(
        "",
        description="Addresses or networks, separated by commas, that may read /metrics: 10.0.0.0/8; empty: anyone.",
    )
    debug_token: SecretStr | None = Field(
        None, min_length=32, description="Token for /debug, sent as X-Debug-Token; empty: /debug is closed to all."
    )
    stream_poll_ms: int = Field(
        10, ge=5, description="Milliseconds between two checks for new stream events; shorter while there are events."
    )
    stream_queue_bytes: int = Field(
        2 << 20,
        ge=65536,
        description="Bytes that a live subscriber may have queued; beyond, it is sent more only as it reads, and is "
        "disconnected if it reads nothing or does not catch up.",
    )
    stream_origins: str = Field(
        "",
        description="Origins of web pages that may open the stream, separated by commas: https://a.example; empty: "
        "any. Clients other than browsers send no origin and are not restricted.",
    )

    site_host: str = Field("127.0.0.1", description="Address the site listens on.")
    site_port: int = Field(8085, ge=1, le=65535, description="Port of the site.")
    public_site_url: str = Field(
        "", description="The site's address as users know it, for links; empty: as each request names it."
    )
    site_requests_a_second: int = Field(
        20, ge=1, description="Requests per second that one address may send to the site, over five seconds."
    )
    site_allowance_a_day: int = Field(
        300_000,
        ge=1,
        description="Chart bars that one address may fetch per day (UTC) without a key; a live page counts as 100.",
    )
    node_modules: Path = Field(
        Path("node_modules"), description="The npm folder with the packages of the site's pages."
    )
    mcp_hosts: str = Field(
        "",
        description="Host names under which MCP is served, separated by commas, beside localhost and that of "
        "PRESAGE_PUBLIC_SITE_URL: mcp.example.com.",
    )
    mcp_origins: str = Field(
        "",
        description="Origins of web pages that may use MCP, separated by commas: https://a.example; empty: only the "
        "site's own. Clients other than browsers send no origin and are not restricted.",
    )
    mcp_sessions: int = Field(1000, ge=1, description="Sessions over server-sent events open at once.")

    alert_webhook_url: Url | None = Field(
        None,
        description="Webhook that receives failed runs and failing checks as JSON (`text` is for chats); empty: none.",
    )
    alert_apprise_urls: SecretStr | None = Field(
        None,
        description="Further receivers of alerts, as Apprise URLs, separated by spaces: ntfys://…; empty: none.",
    )
    alert_on: Literal["warn", "error"] = Field(
        "warn", description="Which failing checks send alerts: warn, all; error, only those that fail as errors."
    )
    alert_pause_s: int = Field(
        60, ge=0, description="Seconds between two messages to one receiver; alerts in between are sent together."
    )
    alert_repeat_h: float = Field(4.0, gt=0, description="Hours between alerts while a failure persists.")

    webhook_window_s: int = Field(720, ge=30, description="Seconds until a delivery run hands over.")
    webhook_poll_ms: int = Field(100, ge=10, description="Milliseconds between two checks for events to deliver.")
    webhook_timeout_s: float = Field(20.0, gt=0, le=60, description="Seconds that a webhook's receiver has to answer.")
    webhook_concurrency: int = Field(50, ge=1, le=200, description="Webhooks that are delivered to concurrently.")
    webhook_account_concurrency: int = Field(
        10, ge=1, le=200, description="Webhooks of one account that are delivered to concurrently."
    )
    webhook_networks: str = Field(
        "",
        description="Networks outside the public internet that webhooks may still be delivered to, separated by "
        "commas: 10.1.2.0/24; empty: none.",
    )
    webhook_encryption_keys: EncryptionKeys | None = Field(
        None,
        description="Keys that encrypt webhook secrets, newest first, separated by commas: 32 bytes each in URL-safe "
        "base64; empty: the file webhook_encryption_keys below data_dir, which `presage up` creates.",
    )
    webhook_log_days: int = Field(30, ge=4, description="Days that a delivery is kept after it has ended.")

    exports_dir: Path | None = Field(
        None, description="Where exported days are written to and served from; empty: `exports` below data_dir."
    )
    exports_s3: Bucket = Field(
        "",
        description="s3://bucket/path that exported days are written to and served from, instead of a folder, so that "
        "hosts share none: in the object store of PRESAGE_LAKE_S3_ENDPOINT, with its region and key.",
    )
    exports_retention_days: int = Field(30, ge=1, description="Days that exports are kept.")

    dagster_port: int = Field(3000, ge=1, le=65535, description="Port of Dagster's UI.")
    dagster_password: SecretStr | None = Field(
        None,
        min_length=16,
        description="Password of Dagster's UI, for user presage: 16 characters or more; empty: `presage up` generates "
        "one and keeps it in dagster.password below data_dir.",
    )
    dagster_hosts: str = Field(
        "",
        description="Host names under which Dagster's UI is served, separated by commas, beside localhost: "
        "dagster.example.com.",
    )

    @model_validator(mode="after")
    def _has_places_of_their_own(self) -> Self:
        lake, exports = f"{self.lake}/", f"{self.exports_s3}/"
        if self.lake and self.exports_s3 and (lake.startswith(exports) or exports.startswith(lake)):
            # The lake deletes files that none of its snapshots names.
            raise ValueError("PRESAGE_EXPORTS_S3 and PRESAGE_LAKE: one must not be within the other")
        if (self.lake_s3_key is None) != (self.lake_s3_secret is None):
            raise ValueError("PRESAGE_LAKE_S3_KEY and PRESAGE_LAKE_S3_SECRET: set both or none")
        return self

    @property
    def usual_shards(self) -> int:
        """Return into how many shards the live feed is divided while no tunable says otherwise."""
        return self.live_shards or min(max(1, (os.cpu_count() or 1) // 2), MAX_SHARDS_BY_CORES)

    @property
    def host_roles(self) -> tuple[hosts.Role, ...]:
        """Return the roles of this host."""
        return hosts.roles(self.roles)

    @property
    def host(self) -> str:
        """Return the name of this host in leases."""
        return self.host_name or socket.gethostname()

    @property
    def exchange_names(self) -> list[str]:
        """Return the exchanges whose markets are read."""
        return listed(self.exchanges)

    @property
    def dagster_host_names(self) -> list[str]:
        """Return the host names under which Dagster's UI is served, beside localhost."""
        return listed(self.dagster_hosts)

    @property
    def data_folder(self) -> Path:
        """Return the absolute path of `data_dir`."""
        return self.data_dir.expanduser().resolve()

    @property
    def exports_folder(self) -> Path:
        """Return the folder that exports are written to."""
        return self.exports_dir or self.data_folder / "exports"


@cache
def get() -> Settings:
    """Return this process's settings, read once."""
    return Settings()


def variable(name: str) -> str:
    """Return the environment variable of a setting."""
    field = Settings.model_fields.get(name)
    return name if field is None else str(field.validation_alias or f"PRESAGE_{name.upper()}")


def example() -> str:
    """Return the text of `.env.example`: every setting with its description and default, commented out."""
    lines = ["# Every setting of Presage, its meaning and its default. Copy to .env and change what you need.", ""]
    for name, field in Settings.model_fields.items():
        default = "" if field.default is None else field.default
        lines += [f"# {field.description}", f"#{variable(name)}={default}", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    print(example(), end="")
