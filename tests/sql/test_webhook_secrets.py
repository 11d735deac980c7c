"""Webhook secrets are stored encrypted, and re-encrypted while they are in use."""

from __future__ import annotations

import pytest
from cryptography.fernet import Fernet
from sqlalchemy.exc import DBAPIError

from config import webhook_keys
from config.settings import Settings
from sql import database, migrate, webhook_secrets
from sql.webhook_secrets import SecretBox, UnreadableSecretError
from tests.orchestration.webhooks.receiving import add_webhook, new_secret

URL = "https://8.8.8.8/"
OLD, NEW = webhook_keys.new(), webhook_keys.new()


def box(*keys):
    return SecretBox(lambda: keys)


def stored(conn):
    return conn.execute("select secret, next_secret from webhooks order by number").fetchall()


def test_what_is_encrypted_is_read_with_any_key_and_by_nobody_without():
    secret = new_secret()

    token = box(OLD).encrypt(secret)

    assert secret not in token
    assert box(NEW, OLD).decrypt(token) == Fernet(OLD).decrypt(token).decode() == secret
    assert box(NEW, OLD).decrypt(secret) == secret, "from a time before encryption"
    for keys in [(NEW,), ()]:
        with pytest.raises(UnreadableSecretError, match="PRESAGE_WEBHOOK_ENCRYPTION_KEYS"):
            box(*keys).decrypt(token)
    with pytest.raises(UnreadableSecretError):
        box(OLD).decrypt(token[:-4] + "AAA=")


def test_a_key_that_is_added_later_is_found_without_a_restart():
    keys = [OLD]
    running = SecretBox(lambda: keys)
    keys.insert(0, NEW)

    assert running.decrypt(box(NEW).encrypt("whsec_1")) == "whsec_1"
    assert Fernet(NEW).decrypt(running.encrypt("whsec_2")) == b"whsec_2"


def test_all_secrets_are_encrypted_with_the_newest_key_in_batches(conn, monkeypatch):
    monkeypatch.setattr(webhook_secrets, "BATCH", 2)
    made = [add_webhook(conn, URL, next_secret=new_secret() if number % 2 else None) for number in range(5)]
    clear = [(row["secret"], row["next_secret"]) for row in made]

    assert webhook_secrets.store_all(conn, box(OLD)) == 7
    assert webhook_secrets.store_all(conn, box(OLD)) == 0, "nothing is left to be done"
    before = stored(conn)
    assert webhook_secrets.store_all(conn, box(NEW, OLD)) == 7

    assert not {each for row in before for each in row if each} & {each for row in stored(conn) for each in row}
    read = box(NEW)
    assert [tuple(each and read.decrypt(each) for each in row) for row in stored(conn)] == clear
    assert webhook_secrets.store_all(conn, box(NEW), clear=True) == 7
    assert stored(conn) == clear


def test_what_was_interrupted_goes_on_where_it_stopped(database_url, monkeypatch):
    monkeypatch.setattr(webhook_secrets, "BATCH", 2)
    encrypt = SecretBox.encrypt
    made = []

    def die_at_fourth(self, secret):
        made.append(secret)
        if len(made) == 4:
            raise ConnectionError
        return encrypt(self, secret)

    with database.connect(database_url, autocommit=True) as conn:
        clear = [add_webhook(conn, URL)["secret"] for _ in range(5)]
        monkeypatch.setattr(SecretBox, "encrypt", die_at_fourth)
        with pytest.raises(ConnectionError):
            webhook_secrets.store_all(conn, box(OLD))
        assert [secret.startswith("whsec_") for secret, _ in stored(conn)] == [False, False, True, True, True]

        assert webhook_secrets.store_all(conn, box(OLD)) == 3

        assert [box(OLD).decrypt(secret) for secret, _ in stored(conn)] == clear


def test_beside_the_release_before_secrets_stay_readable_to_it(database_url):
    with database.connect(database_url, autocommit=True) as conn:
        migrate.downgrade(database_url, "0012")
        add_webhook(conn, URL)
        migrate.upgrade(database_url)

        assert webhook_secrets.sealed(conn, box(OLD), "whsec_1") == "whsec_1"
        webhook_secrets.store_all(conn, box(OLD))
        assert webhook_secrets.sealed(conn, box(OLD), "whsec_1") != "whsec_1"

        with pytest.raises(DBAPIError, match="cannot decrypt"):
            migrate.downgrade(database_url, "0012")
        webhook_secrets.store_all(conn, box(OLD), clear=True)
        migrate.downgrade(database_url, "0012")
        migrate.upgrade(database_url)


def test_a_new_installation_encrypts_from_the_beginning(conn):
    assert webhook_secrets.sealed(conn, box(OLD), "whsec_1") != "whsec_1"
    assert webhook_secrets.sealed(conn, SecretBox(), "whsec_1") == "whsec_1"


# --- Keys


def test_the_file_of_keys_is_made_once_and_read_by_its_owner_only(tmp_path):
    given = Settings(_env_file=None, data_dir=tmp_path / "new")

    assert webhook_keys.read(given) == []
    webhook_keys.ensure(given)
    (first,) = webhook_keys.read(given)
    webhook_keys.ensure(given)
    assert webhook_keys.read(given) == [first]
    webhook_keys.add(given)

    assert webhook_keys.read(given)[1:] == [first]
    (file,) = (tmp_path / "new").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_the_setting_comes_before_the_file_and_is_checked_without_being_shown(tmp_path):
    given = Settings(_env_file=None, data_dir=tmp_path, webhook_encryption_keys=f"{NEW}, {OLD}")

    assert webhook_keys.read(given) == [NEW, OLD]
    webhook_keys.ensure(given)
    assert list(tmp_path.iterdir()) == []
    for wrong in ("hunter2", f"{NEW},hunter2", NEW[:-4]):
        with pytest.raises(ValueError, match="is not 32 bytes in URL-safe base64") as refused:
            Settings(_env_file=None, webhook_encryption_keys=wrong)
        assert wrong not in str(refused.value)
