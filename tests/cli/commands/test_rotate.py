"""`presage rotate`."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from cli.diagnosis import holdings
from cli.main import app
from config import settings, webhook_keys
from sql.webhook_secrets import SecretBox
from tests.orchestration.webhooks.receiving import add_webhook


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Settings whose keys are in a file, of which there is none yet."""
    made = settings.Settings(_env_file=None, data_dir=tmp_path)
    monkeypatch.setattr(settings, "get", lambda: made)
    return made


@pytest.fixture
def presage(database_url):
    return lambda *words: CliRunner().invoke(app, ["rotate", "webhook-secrets", *words, "--database-url", database_url])


def secret(conn):
    return conn.execute("select secret from webhooks").fetchone()[0]


def state(conn, given):
    return [finding.status for finding in holdings.webhook_secrets(conn, given)]


def test_secrets_are_encrypted_with_a_new_key_and_stay_what_they_were(presage, conn, given):
    clear = add_webhook(conn, "https://8.8.8.8/")["secret"]
    assert presage().exit_code == 2
    assert secret(conn) == clear
    assert state(conn, given) == ["warn"]

    webhook_keys.ensure(given)
    running = SecretBox(lambda: webhook_keys.read(given))
    done = presage()
    assert (done.exit_code, done.output) == (0, "1 secrets encrypted with the newest key\n")
    first = secret(conn)
    assert presage("--new-key").exit_code == 0

    assert clear not in {first, secret(conn)}
    assert len({clear, first, secret(conn)}) == 3
    assert running.decrypt(secret(conn)) == clear
    assert state(conn, given) == ["ok"]
    assert presage("--clear").output == "1 secrets decrypted\n"
    assert secret(conn) == clear


def test_a_secret_whose_key_is_lost_is_reported_and_left_alone(presage, conn, given):
    stored = SecretBox(lambda: [webhook_keys.new()]).encrypt("whsec_1")
    add_webhook(conn, "https://8.8.8.8/", secret=stored)
    webhook_keys.ensure(given)

    done = presage()

    assert done.exit_code == 1
    assert "its key is missing in PRESAGE_WEBHOOK_ENCRYPTION_KEYS" in done.output
    assert secret(conn) == stored
    assert state(conn, given) == ["fail"]


def test_keys_of_the_environment_are_not_the_commands_to_change(presage, conn, given, monkeypatch):
    other = given.model_copy(update={"webhook_encryption_keys": settings.SecretStr(webhook_keys.new())})
    monkeypatch.setattr(settings, "get", lambda: other)

    refused = presage("--new-key")

    assert refused.exit_code == 2
    assert not (given.data_dir / webhook_keys.FILE).exists()
