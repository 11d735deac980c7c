"""The audit trail, and replaced keys."""

from alembic import op

revision, down_revision = "0016", "0015"


def upgrade() -> None:
    op.execute("""
create table audit_log (
    ts timestamp with time zone not null default now(),
    entry_id bigint generated always as identity,
    action text not null,
    result text not null,
    times bigint not null default 1,
    account_id bigint,
    key_id integer,
    operator text,
    address text,
    subject text,
    detail jsonb not null default '{}'::jsonb,
    constraint audit_log_pkey primary key (ts, entry_id)
)
""")
    op.execute("select create_hypertable('audit_log', by_range('ts', interval '30 days'), create_default_indexes => false)")
    op.execute("create index audit_log_account_idx on audit_log (account_id, ts desc) where account_id is not null")
    op.execute("create index audit_log_operator_idx on audit_log (action, ts desc) where operator is not null")
    op.execute(
        "comment on table audit_log is 'Who changed or tried what; rows are added, never changed, and dropped by whole chunks'"
    )
    for column, text in {
        "ts": "When; of counted requests, their minute",
        "action": "Such as key.failed, account.register, webhook.delete, key.revoke",
        "result": "ok, started or failed; of counted requests why they were refused",
        "times": "How many requests this row counts",
        "account_id": "The account that did it, or that an operator did it to",
        "key_id": "The same, of the key",
        "operator": "User and host of a command; null: it was a request",
        "address": "Of the client: an IPv4 address or an IPv6 /64; others: beyond those counted singly",
        "subject": "What it was done to, if not an account or a key",
    }.items():
        op.execute(f"comment on column audit_log.{column} is '{text}'")
    op.execute("""
create function refuse_audit_change() returns trigger language plpgsql as $$
begin
    raise exception 'the audit trail is append-only: % is refused', tg_op using errcode = 'insufficient_privilege';
end
$$
""")
    op.execute(
        "create trigger append_only before update or delete on audit_log for each row execute function refuse_audit_change()"
    )
    op.execute(
        "create trigger append_only_table before truncate on audit_log for each statement execute function refuse_audit_change()"
    )
    op.execute("""
create table audit_counts (
    minute timestamp with time zone not null,
    action text not null,
    result text not null,
    address text not null,
    account_id bigint not null,
    key_id integer not null,
    times bigint not null,
    constraint audit_counts_pkey primary key (minute, action, result, address, account_id, key_id)
)
""")
    op.execute("comment on table audit_counts is 'Requests of minutes that are not over yet; they move to audit_log'")
    op.execute("comment on column audit_counts.minute is 'Its first instant'")
    op.execute("comment on column audit_counts.account_id is '0: unknown'")
    op.execute("comment on column audit_counts.key_id is '0: unknown'")
    op.execute("""
create table ended_keys (
    key_hash bytea not null,
    key_id integer not null,
    ended_at timestamp with time zone not null default now(),
    constraint ended_keys_pkey primary key (key_hash),
    constraint ended_keys_key_id_fkey foreign key (key_id) references api_keys (key_id)
)
""")
    op.execute("create index ended_keys_ended_at_idx on ended_keys (ended_at)")
    op.execute("comment on table ended_keys is 'Replaced keys, by which their further use is recognised'")
    op.execute("comment on column ended_keys.key_hash is 'SHA-256 of a key that was replaced'")
    op.execute("""
create function keep_ended_key() returns trigger language plpgsql as $$
begin
    insert into ended_keys (key_hash, key_id) values (old.key_hash, old.key_id) on conflict do nothing;
    return null;
end
$$
""")
    op.execute(
        "create trigger key_ended after update of key_hash on api_keys for each row "
        "when (old.key_hash is distinct from new.key_hash) execute function keep_ended_key()"
    )


def downgrade() -> None:
    op.execute("drop trigger key_ended on api_keys")
    op.execute("drop function keep_ended_key()")
    for table in ("ended_keys", "audit_counts", "audit_log"):  # a hypertable is dropped alone
        op.execute(f"drop table {table}")
    op.execute("drop function refuse_audit_change()")
