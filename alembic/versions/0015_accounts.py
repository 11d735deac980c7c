"""Accounts: closed ones, verified addresses, and links that were mailed."""

from alembic import op

revision, down_revision = "0015", "0014"


def upgrade() -> None:
    op.execute("""
alter table accounts
    add column verified_at timestamp with time zone,
    add column closed_at timestamp with time zone,
    add column former_email text
""")
    for column, text in {
        "email": "Normalised; of a former account, a text that is none",
        "verified_at": "When its owner proved to receive mail at the address",
        "closed_at": "When the operator revoked its last key; its address cannot register again",
        "former_email": "The address that it had until a new account got it",
    }.items():
        op.execute(f"comment on column accounts.{column} is '{text}'")
    # Until now, only an operator could revoke a key.
    op.execute("""
update accounts a set closed_at = k.revoked_at
from (select account_id, max(revoked_at) as revoked_at from api_keys group by 1 having bool_and(revoked_at is not null)) as k
where a.account_id = k.account_id and a.email <> 'site'
""")
    op.execute("""
create table account_tokens (
    token_hash bytea not null,
    account_id bigint not null,
    purpose text not null,
    expires_at timestamp with time zone not null,
    constraint account_tokens_pkey primary key (token_hash),
    constraint account_tokens_account_id_fkey foreign key (account_id) references accounts (account_id)
)
""")
    op.execute("create index account_tokens_account_id_idx on account_tokens (account_id)")
    op.execute("comment on table account_tokens is 'Links that were mailed and not used yet'")
    op.execute(
        "comment on column account_tokens.token_hash is 'SHA-256; the token itself is in the mail only'"
    )
    op.execute("comment on column account_tokens.purpose is 'verify, recover'")
    op.execute(
        "comment on column registrations.address is 'Where keys were asked for from: an IPv4 address, an IPv6 /64; "
        "or what is limited alike'"
    )


def downgrade() -> None:
    op.execute("drop table account_tokens")
    op.execute(
        "comment on column registrations.address is 'Where keys were asked for from: an IPv4 address, an IPv6 /64'"
    )
    op.execute("alter table accounts drop column verified_at, drop column closed_at, drop column former_email")
    op.execute("comment on column accounts.email is 'Normalised'")
