"""`presage migrate` creates the logins that the settings name."""

from __future__ import annotations

import secrets

import psycopg
from pydantic import SecretStr
from typer.testing import CliRunner

from cli.main import app
from config import settings as configuration
from config.settings import Settings
from sql.roles.rights import API
from tests.roles import login_url


def test_the_logins_of_the_settings_are_created_and_no_password_is_shown(conn, database_url, monkeypatch):
    name = f"test_{secrets.token_hex(4)}"
    url = login_url(database_url, API).replace(f"{API}_login:of-the-tests", f"{name}:very-secret")
    given = Settings(_env_file=None, api_database_url=SecretStr(url))
    monkeypatch.setattr(configuration, "get", lambda: given)
    try:
        done = CliRunner().invoke(app, ["migrate", "--database-url", database_url])

        assert done.exit_code == 0, done.output
        assert "very-secret" not in done.output
        with psycopg.connect(url) as api:
            assert api.execute("select current_user, session_user").fetchone() == (API, name)
        assert conn.execute("select count(*) from audit_log where detail::text like '%very-secret%'").fetchone() == (0,)
    finally:
        conn.execute(f"drop role if exists {name}")
