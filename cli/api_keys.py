"""Create and list API keys for the command line."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING

from cli.recording import record
from config import secret_files

if TYPE_CHECKING:
    from pathlib import Path

DEMO_APP = "presage demo"


def create(url: str, email: str, app_name: str, tier: str) -> str:
    """Create a key and return it."""
    from api.metering import keys
    from sql.database import connect
    from sql.queries import keys as queries

    with connect(url) as conn:
        key = keys.create(conn, keys.normalised(email), app_name, tier=tier)
        key_id, *_, account_id = queries.by_hash(conn, key_hash=keys.digest(key))
        record(conn, account_id=account_id, key_id=key_id, tier=tier)
        return key


def ready_key(url: str, file: Path) -> str:
    """Return the demo's key: an earlier run's if it is still valid, or a new one."""
    from sql.database import connect

    if file.exists():
        key = file.read_text().strip()
        with connect(url) as conn:
            known = conn.execute(
                "select from api_keys where key_hash = %s and revoked_at is null",
                [hashlib.sha256(key.encode()).digest()],
            ).fetchone()
        if known is not None:
            return key
    # A new account each time: an earlier key whose file was deleted must not count against the account's limit.
    key = create(url, f"demo-{secrets.token_hex(4)}@presage.example", DEMO_APP, "pro")
    secret_files.write(file, key)
    return key


def show(url: str) -> None:
    """Print the keys as a table."""
    from rich.console import Console
    from rich.table import Column, Table

    from sql.database import connect
    from sql.queries import figures as queries

    # Other commands identify a key by its prefix, so it is never wrapped or cut, however narrow the terminal.
    table = Table(Column("key", no_wrap=True), "email", "app", "tier", "created", "used this month", "limit", "revoked")
    with connect(url) as conn:
        for prefix, email, app_name, tier, created_at, used, limit, revoked_at in queries.keys(conn):
            table.add_row(
                f"{prefix}…",
                email,
                app_name,
                tier,
                f"{created_at:%Y-%m-%d}",
                f"{used:,}",
                "" if limit is None else f"{limit:,}",
                "" if revoked_at is None else f"{revoked_at:%Y-%m-%d}",
            )
    Console().print(table)
