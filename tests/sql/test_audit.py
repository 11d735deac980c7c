"""The audit trail is append-only, on either licence."""

from __future__ import annotations

import psycopg
import pytest

from tests.community import CommunityError
from tests.factories import insert

CHANGES = ("update audit_log set result = 'ok'", "delete from audit_log", "truncate audit_log")


@pytest.mark.parametrize("change", CHANGES)
def test_entries_are_neither_changed_nor_deleted(conn, change):
    insert(conn, "audit_log", {"action": "key.revoke", "result": "failed"})

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"), conn.transaction():
        conn.execute(change)

    assert conn.execute("select action, result from audit_log").fetchall() == [("key.revoke", "failed")]


@pytest.mark.parametrize("change", CHANGES)
def test_nor_are_they_under_the_other_licence(community, change):
    community.execute("insert into audit_log (action, result) values ('key.revoke', 'failed')")

    with pytest.raises(CommunityError, match="append-only"):
        community.execute(change)


@pytest.mark.parametrize("change", CHANGES[:2])
def test_nor_in_a_chunk(conn, change):
    insert(conn, "audit_log", {"action": "key.revoke", "result": "failed"})
    (chunk,) = conn.execute("select show_chunks('audit_log')::text").fetchone()

    with pytest.raises(psycopg.errors.InsufficientPrivilege, match="append-only"), conn.transaction():
        conn.execute(change.replace("audit_log", chunk))


def test_replaced_keys_are_remembered_by_their_digest(conn):
    account = insert(conn, "accounts", {"email": "me@example.com", "app_name": "bot"})["account_id"]
    key = insert(conn, "api_keys", {"account_id": account, "key_hash": b"\1", "prefix": "x", "tier": "free"})["key_id"]

    conn.execute("update api_keys set tier = 'pro'")
    conn.execute("update api_keys set key_hash = %s", [b"\2"])

    assert conn.execute("select key_hash, key_id from ended_keys").fetchall() == [(b"\1", key)]
