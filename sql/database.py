"""Database connections, and conversions and facts that other modules need."""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Any, Literal, LiteralString, cast
from urllib.parse import quote, urlsplit

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

License = Literal["timescale", "apache"]

BIGINT_MAX = 2**63 - 1
MICRO = 1_000_000
"""Micro-units in one share, one dollar, or a price of one: the tables hold amounts in micro-units (10⁻⁶)."""
_EXACT = Context(prec=60, rounding=ROUND_HALF_EVEN)  # far more digits than fit a bigint: only quantize rounds


def connect(
    url: str,
    *,
    autocommit: bool = False,
    name: str = "presage",
    connect_timeout_s: int = 10,
    vanished_s: int = 60,
    **parameters: str | int,
) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect in UTC; further server parameters by name, such as `statement_timeout=5000`.

    A server whose machine vanished silently (power, firewall) is noticed after `vanished_s`, be the connection idle or
    in the middle of a statement: libpq alone waits for two hours, or a quarter of one.
    """
    limits: dict[str, Any] = connection_limits(connect_timeout_s=connect_timeout_s, vanished_s=vanished_s)
    return psycopg.connect(
        url,
        autocommit=autocommit,
        application_name=name,
        options=server_options(url, **parameters),
        **limits,
    )


def connect_for_lock(url: str, *, name: str, vanished_s: int) -> psycopg.Connection[tuple[Any, ...]]:
    """Connect for a lock of the session, in autocommit: the server, too, soon ends it if this host has vanished."""
    return connect(
        url,
        autocommit=True,
        name=name,
        connect_timeout_s=vanished_s,
        vanished_s=vanished_s,
        statement_timeout=10_000,
        tcp_keepalives_idle=5,
        tcp_keepalives_interval=2,
        tcp_keepalives_count=3,
        tcp_user_timeout=10_000,
    )


def connection_limits(*, connect_timeout_s: int, vanished_s: int) -> dict[str, int]:
    """Return libpq's parameters that end connections to a server which does not answer any more."""
    return {
        "connect_timeout": connect_timeout_s,
        "keepalives_idle": min(15, vanished_s // 2),
        "keepalives_interval": min(5, max(1, vanished_s // 6)),
        "keepalives_count": 3,
        # It also ends a connection whose server has read nothing for so long, although it lives.
        "tcp_user_timeout": vanished_s * 1000,
    }


def server_options(url: str, **parameters: str | int) -> str:
    """Return libpq's `options`: those of the URL, UTC, and the parameters given."""
    given = str(conninfo_to_dict(url).get("options") or "")
    ours = {"timezone": "UTC", **parameters}
    escaped = {key: str(value).replace(" ", r"\ ") for key, value in ours.items()}  # a bare space would end the value
    return " ".join([given, *(f"-c {key}={value}" for key, value in escaped.items())]).strip()


def set_password(conn: psycopg.Connection[Any], role: str, password: str) -> None:
    """Set a role's password. The server, its log and its statistics see the SCRAM verifier, never the password."""
    verifier = conn.pgconn.encrypt_password(password.encode(), role.encode(), b"scram-sha-256").decode()
    conn.execute(sql.SQL("alter role {} password {}").format(sql.Identifier(role), sql.Literal(verifier)))


def with_password(url: str, password: str) -> str:
    """Return a libpq connection string with this password; it stays a URL if it is one."""
    if "://" not in url:
        return make_conninfo(url, password=password)
    parts = urlsplit(url)
    user, _, host = parts.netloc.rpartition("@")
    return parts._replace(netloc=f"{user.partition(':')[0]}:{quote(password, safe='')}@{host}").geturl()


def without_password(url: str) -> str:
    """Return a libpq connection string that names the same database and holds no password."""
    parts: dict[str, Any] = {key: value for key, value in conninfo_to_dict(url).items() if "password" not in key}
    return make_conninfo(**parts)


def sqlalchemy_url(url: str, driver: str = "psycopg") -> str:
    """Convert a libpq URI, also of a Unix socket, into SQLAlchemy's form."""
    from sqlalchemy import URL  # noqa: PLC0415 (a tenth of a second, which few processes need)

    parts = {key: str(value) for key, value in conninfo_to_dict(url).items() if value is not None}
    host, port = parts.pop("host", None), parts.pop("port", None)
    if host and (host.startswith("/") or "," in host):  # sockets and several hosts cannot be written before the slash
        parts["host"] = host
        if port:
            parts["port"] = port
        host = port = None
    return URL.create(
        f"postgresql+{driver}",
        username=parts.pop("user", None),
        password=parts.pop("password", None),
        host=host,
        port=int(port) if port else None,
        database=parts.pop("dbname", None),
        query=parts,
    ).render_as_string(hide_password=False)


def license(conn: psycopg.Connection[Any]) -> License:  # noqa: A001 (the thing's own name; nobody here asks Python for its licence)
    """Return TimescaleDB's licence: `timescale` has continuous aggregates and columnstore, `apache` has neither."""
    row = cast("tuple[str | None] | None", conn.execute(LICENSE).fetchone())
    found = row[0] if row else None
    if found not in ("timescale", "apache"):
        raise LookupError("TimescaleDB is not installed in this database")
    return cast("License", found)


# Unknown until the extension is loaded, so read with the default of null.
LICENSE: LiteralString = "select current_setting('timescaledb.license', true)"


def micro(value: str | float | Decimal) -> int:
    """Convert a decimal number into micro-units, exactly; a seventh decimal is rounded half even."""
    try:
        # A float counts as its shortest decimal, so that 0.1 is 0.1.
        number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        units = _EXACT.quantize(_EXACT.multiply(number, Decimal(MICRO)), Decimal(1)) if number.is_finite() else None
    except (ArithmeticError, TypeError) as error:
        raise ValueError(f"not a number: {value!r}") from error
    if units is None or abs(units) > BIGINT_MAX:
        raise ValueError(f"beyond what a bigint of micro-units holds: {value!r}")
    return int(units)
