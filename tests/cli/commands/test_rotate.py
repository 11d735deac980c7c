"""`presage rotate`."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import b64decode
from urllib.parse import quote, urlsplit

import pytest
from dotenv import dotenv_values
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from typer.testing import CliRunner

from api.metering import ledger_location
from cli.commands import rotate as commands
from cli.diagnosis import holdings
from cli.main import app
from cli.stack import control
from config import settings, stored_secrets, webhook_keys
from sql.database import set_password
from sql.embedded import place
from sql.queries import cursors
from sql.roles.rights import API, PIPELINE
from sql.webhook_secrets import SecretBox
from tests.orchestration.webhooks.receiving import add_webhook
from tests.roles import login_url


@pytest.fixture
def given(tmp_path, monkeypatch):
    """Settings whose keys are in a file, of which there is none yet."""
    made = settings.Settings(_env_file=None, data_dir=tmp_path)
    monkeypatch.setattr(settings, "get", lambda: made)
    return made


@pytest.fixture
def presage(database_url):
    return lambda *words: CliRunner().invoke(app, ["rotate", "webhook-secrets", *words, "--database-url", database_url])


def rotate(database_url, *words):
    return CliRunner().invoke(app, ["rotate", *words, "--database-url", database_url])


def known(conn):
    """The secrets of cursors, newest first."""
    return [each for (each,) in cursors.secrets(conn)]


def test_a_new_secret_signs_cursors_and_former_ones_verify_for_a_day(database_url, conn):
    (first,) = known(conn)
    assert rotate(database_url, "cursor-secret").exit_code == 0
    second, *_ = known(conn)
    done = rotate(database_url, "cursor-secret")
    third, *former = known(conn)

    assert "earlier ones stay valid for a day" in done.output
    assert len({first, second, third}) == 3
    assert len(bytes.fromhex(third)) == 32
    assert former == [second, first]
    assert not any(each in done.output for each in (first, second, third))
    conn.execute(
        "update settings set value = jsonb_set(value, '{1,until}', to_jsonb(now()))"
        " where name = 'former_cursor_secrets'"
    )
    assert known(conn) == [third, second]
    rotate(database_url, "cursor-secret")
    kept = conn.execute("select value::text from settings where name = 'former_cursor_secrets'").fetchone()[0]
    assert [each in kept for each in (third, second, first)] == [True, True, False]


def test_after_a_leak_former_secrets_of_cursors_verify_no_more(database_url, conn):
    rotate(database_url, "cursor-secret")
    former = known(conn)

    done = rotate(database_url, "cursor-secret", "--revoke")

    assert "earlier ones are refused" in done.output
    (new,) = known(conn)
    assert new not in former
    row = conn.execute("select detail from audit_log where action = 'rotate.cursor-secret' order by ts desc").fetchone()
    assert row == ({"revoke": "True"},)


@pytest.mark.parametrize("role", [PIPELINE, API])
def test_whoever_does_not_see_the_secret_of_cursors_is_told_that_nothing_has_changed(database_url, conn, role):
    before = conn.execute("select name, value from settings order by name").fetchall()

    done = rotate(login_url(database_url, role), "cursor-secret")

    assert done.exit_code == 1
    assert "a new secret" not in done.output
    assert ("nothing has changed" in done.output) == (role == PIPELINE)  # the API may not write settings at all
    assert conn.execute("select name, value from settings order by name").fetchall() == before


def test_credits_are_counted_on_where_they_were_when_the_secret_of_cursors_changes(database_url, conn, tmp_path):
    before = ledger_location.path(conn, tmp_path)

    for words in ([], [], ["--revoke"]):
        assert rotate(database_url, "cursor-secret", *words).exit_code == 0

    assert ledger_location.path(conn, tmp_path) == before


@pytest.fixture
def env_file(tmp_path, monkeypatch):
    """The file `.env` of the programs."""
    monkeypatch.setattr(commands, "ENV_FILE", tmp_path / ".env")
    monkeypatch.delenv("DATABASE_URL", raising=False)
    return tmp_path / ".env"


def test_a_new_debug_token_is_put_into_the_file_and_the_api_replaced(database_url, given, env_file, monkeypatch):
    env_file.write_text("PRESAGE_DEBUG_TOKEN=old\nPRESAGE_API_PORT=8080\n")
    asked = []
    monkeypatch.setattr(control, "restart", lambda *what: asked.append(what) or (True, "api: replaced"))

    done = rotate(database_url, "debug-token")

    token = dotenv_values(env_file)["PRESAGE_DEBUG_TOKEN"]
    assert (done.exit_code, asked) == (0, [(given.data_folder, "api")])
    assert settings.Settings(_env_file=env_file).debug_token.get_secret_value() == token
    assert env_file.read_text() == f"PRESAGE_DEBUG_TOKEN={token}\nPRESAGE_API_PORT=8080\n"
    assert "api: replaced" in done.output
    assert token not in done.output


def test_without_a_running_api_it_is_said_that_it_has_to_be_restarted(database_url, given, env_file):
    done = rotate(database_url, "debug-token")

    assert done.exit_code == 0
    assert "restart the API" in done.output


def test_an_api_that_does_not_get_ready_is_an_error(database_url, given, env_file, monkeypatch):
    monkeypatch.setattr(control, "restart", lambda *_: (False, "the next process of api ended while starting"))

    assert rotate(database_url, "debug-token").exit_code == 1


def test_a_debug_token_of_the_environment_is_not_the_commands_to_change(database_url, env_file, monkeypatch):
    monkeypatch.setenv("PRESAGE_DEBUG_TOKEN", "x" * 32)

    assert rotate(database_url, "debug-token").exit_code == 2
    assert not env_file.exists()


@pytest.fixture
def role(conn):
    """A role that may do everything, dropped afterwards."""
    name = f"rotating_{secrets.token_hex(4)}"
    conn.execute(f"create role {name} login superuser")
    set_password(conn, name, "old")
    yield name
    conn.execute(f"drop role {name}")


@pytest.fixture
def url_of_role(database_url, role):
    parts = urlsplit(database_url)
    return parts._replace(netloc=f"{role}:old@{parts.netloc.rpartition('@')[2]}").geturl()


def is_password(conn, role, password):
    """Return whether a role has a password, of which the server keeps a SCRAM verifier."""
    (kept,) = conn.execute("select rolpassword from pg_authid where rolname = %s", [role]).fetchone()
    iterations, salt, stored_key = re.match(r"SCRAM-SHA-256\$(\d+):(.*?)\$(.*?):", kept).groups()
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b64decode(salt), int(iterations))
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    return hashlib.sha256(client_key).digest() == b64decode(stored_key)


def test_a_new_database_password_is_put_where_every_new_connection_reads_it(conn, role, url_of_role, tmp_path):
    file = tmp_path / "pgpass"
    file.write_text(f"*:*:*:{role}:old\n*:*:*:another:old\n")
    url = (
        url_of_role.replace(":old@", "@") + f"{'&' if '?' in url_of_role else '?'}passfile={quote(str(file), safe='')}"
    )
    assert is_password(conn, role, "old")

    done = rotate(url, "database-password")

    new = file.read_text().splitlines()[0].rpartition(":")[2]
    assert (done.exit_code, file.read_text()) == (0, f"*:*:*:{role}:{new}\n*:*:*:another:old\n")
    assert is_password(conn, role, new)
    assert "nothing has to be restarted" in done.output
    assert new not in done.output
    row = conn.execute("select subject, result from audit_log where action = 'rotate.database-password'").fetchone()
    assert row == (role, "ok")


def test_a_new_database_password_is_put_into_the_file_and_programs_have_to_be_restarted(
    conn, role, url_of_role, env_file, monkeypatch
):
    read_url = make_conninfo(url_of_role, dbname="replica")
    env_file.write_text(f"DATABASE_URL={url_of_role}\nDATABASE_READ_URL={read_url}\nPRESAGE_API_PORT=8080\n")
    monkeypatch.setattr(settings, "get", lambda: settings.Settings(_env_file=env_file))

    done = CliRunner().invoke(app, ["rotate", "database-password"])

    changed = dotenv_values(env_file)
    new, of_replica = (conninfo_to_dict(changed[name])["password"] for name in ("DATABASE_URL", "DATABASE_READ_URL"))
    assert done.exit_code == 0
    assert changed["DATABASE_URL"] == url_of_role.replace(":old@", f":{new}@")
    assert (of_replica, changed["PRESAGE_API_PORT"]) == (new, "8080")
    assert is_password(conn, role, new)
    assert "restart `presage up` now" in done.output


def test_a_password_that_is_nowhere_to_be_replaced_stays(conn, role, url_of_role, env_file, tmp_path):
    refused = rotate(url_of_role, "database-password")
    nobody = rotate(f"{url_of_role.replace(':old@', '@')}&passfile={tmp_path / 'missing'}", "database-password")

    assert "neither in .env nor in a password file" in refused.output
    assert (refused.exit_code, nobody.exit_code) == (1, 1)
    assert is_password(conn, role, "old")
    assert not env_file.exists()


@pytest.fixture
def url_with_passfile(url_of_role, role, tmp_path):
    """A URL that names a password file, which is a link to one in a folder of its own."""
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept/pgpass").write_text(f"*:*:*:{role}:old\n")
    (tmp_path / "kept/pgpass").chmod(0o640)
    (tmp_path / "pgpass").symlink_to("kept/pgpass")
    return f"{url_of_role}{'&' if '?' in url_of_role else '?'}passfile={tmp_path / 'pgpass'}"


def test_a_file_that_cannot_be_replaced_is_told_in_a_line_and_nothing_changes(
    conn, role, url_with_passfile, tmp_path, monkeypatch
):
    def full(*_):
        raise OSError(28, "no space left on device")

    monkeypatch.setattr(stored_secrets, "set_password", full)

    done = rotate(url_with_passfile, "database-password")

    assert done.exit_code == 1
    assert "no space left on device" in done.output
    assert isinstance(done.exception, SystemExit)
    assert is_password(conn, role, "old")
    assert [file.name for file in (tmp_path / "kept").iterdir()] == ["pgpass"]


def test_if_the_server_does_not_commit_the_former_password_is_kept_beside_the_new_one(
    conn, role, url_with_passfile, tmp_path, monkeypatch
):
    replaced = stored_secrets.set_password

    def and_end_the_connection(*given):
        replaced(*given)
        conn.execute("select pg_terminate_backend(pid) from pg_stat_activity where usename = %s", [role])

    monkeypatch.setattr(stored_secrets, "set_password", and_end_the_connection)

    done = rotate(url_with_passfile, "database-password")

    former = tmp_path / "kept/.pgpass.old"
    assert done.exit_code == 1
    assert str(former) in done.output
    assert former.read_text() == f"*:*:*:{role}:old\n"
    assert former.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "pgpass").read_text() != former.read_text()
    assert is_password(conn, role, "old")


def test_the_embedded_servers_password_is_in_its_own_file(given):
    named, store, then = commands._password_store(None, "presage")
    store("new")

    file = place.find(given.data_folder / "database").password
    assert named == file
    assert file.read_text() == "new"
    assert "nothing has to be restarted" in then


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
