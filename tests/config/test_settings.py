"""Settings that are refused, without the secrets in them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from pydantic import ValidationError

from config.settings import Settings

SECRET = "p4ssw0rd0f0urs"


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("database_url", f"postgresql://presage:{SECRET}/x@db:5432/presage"),
        ("database_url", f"postgresql://presage:5432/{SECRET}@db/presage"),
        ("database_url", f"postgresql://presage:{SECRET}%zz@db/presage"),
        ("database_url", f"postgresql://presage:{SECRET}@x@db/presage"),
        ("database_read_url", f"postgresql//presage:{SECRET}@db/presage"),
        ("pipeline_database_url", f"postgresql://pipeline:{SECRET}/x@db:5432/presage"),
        ("api_database_url", f"postgresql://api:{SECRET}%zz@db/presage"),
        ("site_database_url", f"postgresql://site:{SECRET}@x@db/presage"),
        ("smtp_url", f"smtps://presage:{SECRET}/x@mail"),
        ("redis_url", f"redis://:{SECRET}/x@cache"),
        ("alert_webhook_url", f"https://chat:{SECRET}/hook"),
        ("alert_webhook_url", f"{SECRET}\n"),
        ("chain_rpc_urls", f"https://node/{SECRET}, https://node:{SECRET}/x"),
    ],
)
def test_a_url_that_cannot_be_opened_is_refused_without_being_repeated(name, url):
    with pytest.raises(ValidationError) as refused:
        Settings(_env_file=None, **{name: url})

    assert "percent-encoded" in str(refused.value)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "url"),
    [
        ("database_url", "postgresql://presage:a%2Fb%40c@db:5432/presage?sslmode=verify-full"),
        ("database_url", "postgresql://presage@/presage?host=%2Frun%2Fpostgresql&port=5432"),
        ("database_read_url", "host=one,two port=5432,5433 dbname=presage"),
        ("smtp_url", "smtps://presage:a,b%2Fc@mail"),
        ("redis_url", "redis://:secret@cache:6379/0"),
        ("chain_rpc_urls", "https://node.example/v2/key, http://127.0.0.1:8545"),
    ],
)
def test_urls_are_taken_as_they_are(name, url):
    assert getattr(Settings(_env_file=None, **{name: url}), name).get_secret_value() == url


def test_a_wrong_database_url_of_a_command_is_not_repeated():
    url = f"postgresql://presage:{SECRET}/x@127.0.0.1:1/presage"

    done = subprocess.run(
        [sys.executable, "-m", "cli.main", "key", "list", "--database-url", url],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert done.stderr.startswith("presage: not a database URL")
    assert SECRET not in done.stderr


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("polymarket,manifold", "unknown: manifold; allowed: polymarket, kalshi"),
        ("kalshi", "polymarket cannot be left out"),
        ("", None),
        (" kalshi , polymarket", None),
    ],
)
def test_exchanges_are_known_ones_with_polymarket_among_them(monkeypatch, given, said):
    monkeypatch.setenv("PRESAGE_EXCHANGES", given)

    if said is None:
        assert set(Settings(_env_file=None).exchange_names) == ({"polymarket", "kalshi"} if given else {"polymarket"})
    else:
        with pytest.raises(ValidationError, match=said):
            Settings(_env_file=None)
