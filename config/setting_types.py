"""Types of settings, each with the check of what it may hold; messages never repeat a secret."""

from __future__ import annotations

import base64
import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr

from config import hosts
from config.exchanges import DEFAULT, EXCHANGES

PERCENT_ENCODE = "in a password, / ? # @ : and % have to be percent-encoded"
BUCKET = r"s3://[a-z0-9][a-z0-9.-]{1,61}[a-z0-9](/[\w.-]+)*"
KEY_BYTES = 32


def listed(text: str) -> list[str]:
    """Return the names of a list that is separated by commas."""
    return [name for part in text.split(",") if (name := part.strip())]


def check_database_url(url: str) -> None:
    """Raise ValueError for a URL that libpq refuses or reads otherwise than it is meant: libpq's errors repeat it."""
    from psycopg import ProgrammingError  # noqa: PLC0415 (slow to import, and not needed without a URL)
    from psycopg.conninfo import conninfo_to_dict  # noqa: PLC0415

    try:
        parts = {name: str(value) for name, value in conninfo_to_dict(url).items()}
    except ProgrammingError:
        parts = None
    if (
        parts is None
        or not re.fullmatch(r"[0-9,]*", parts.get("port", ""))
        or "@" in parts.get("host", "")[1:] + parts.get("dbname", "")
    ):
        raise ValueError(f"not a database URL, postgresql://user:password@host:port/database; {PERCENT_ENCODE}")


def _database_url(given: SecretStr) -> SecretStr:
    check_database_url(given.get_secret_value())
    return given


def _url(given: SecretStr) -> SecretStr:
    _check_url(given.get_secret_value())
    return given


def _urls(given: SecretStr) -> SecretStr:
    for each in given.get_secret_value().split(","):
        _check_url(each)
    return given


def _check_url(text: str) -> None:
    # Whoever opened a wrong one would raise an error that repeats it, with its secrets.
    try:
        parts = urlsplit(text.strip())
        valid = not text.strip() or (parts.scheme and (parts.port or parts.hostname) and text.isprintable())
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"not a URL, scheme://host:port/…; {PERCENT_ENCODE}") from None


def _keys(given: SecretStr) -> SecretStr:
    for nth, key in enumerate(given.get_secret_value().replace(",", " ").split(), start=1):
        try:
            valid = len(base64.b64decode(key, altchars=b"-_", validate=True)) == KEY_BYTES
        except ValueError:
            valid = False
        if not valid:  # the message must not contain it
            raise ValueError(
                f"key {nth} is not 32 bytes in URL-safe base64, as of `openssl rand -base64 32 | tr +/ -_`"
            )
    return given


def _roles(given: str) -> str:
    hosts.roles(given)
    return given


def _exchanges(given: str) -> str:
    names = listed(given)
    if unknown := [name for name in names if name not in EXCHANGES]:
        raise ValueError(f"unknown: {', '.join(unknown)[:80]}; allowed: {', '.join(EXCHANGES)}")
    if DEFAULT.name not in names:
        raise ValueError(f"{DEFAULT.name} cannot be left out")
    return given


def _folder_or_bucket(given: str) -> str:
    if given and not re.fullmatch(rf"/[^\x00-\x1f]+|{BUCKET}/?", given):
        raise ValueError("neither an absolute folder nor s3://bucket/path")
    return given.rstrip("/") or given


def _bucket(given: str) -> str:
    if given and not re.fullmatch(rf"{BUCKET}/?", given):
        raise ValueError("not s3://bucket/path")
    return given.rstrip("/")


def _word(given: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9.:_-]*", given):
        raise ValueError("only letters, digits and . : _ - are allowed")
    return given


def _line(given: SecretStr) -> SecretStr:
    # It becomes a line of a configuration file.
    if not re.fullmatch(r"[!-~]([ -~]*[!-~])?", given.get_secret_value()):
        raise ValueError("only printable ASCII characters, without a space at the beginning or the end")
    return given


DatabaseUrl = Annotated[SecretStr, AfterValidator(_database_url)]
Url = Annotated[SecretStr, AfterValidator(_url)]
Urls = Annotated[SecretStr, AfterValidator(_urls)]
EncryptionKeys = Annotated[SecretStr, AfterValidator(_keys)]
Line = Annotated[SecretStr, AfterValidator(_line)]
Roles = Annotated[str, AfterValidator(_roles)]
Exchanges = Annotated[str, AfterValidator(_exchanges)]
FolderOrBucket = Annotated[str, AfterValidator(_folder_or_bucket)]
Bucket = Annotated[str, AfterValidator(_bucket)]
Word = Annotated[str, AfterValidator(_word)]
