"""The hosts that run feeds, so that each knows which of them are its own."""

from alembic import op

revision, down_revision = "0027", "0026"


def upgrade() -> None:
    op.execute("""
create table feed_hosts (
    host text not null,
    instance text not null,
    beat_at timestamp with time zone not null default now(),
    constraint feed_hosts_pkey primary key (host)
)
""")
    op.execute("comment on table feed_hosts is 'Hosts that run feeds without Dagster, `presage up --role feed`'")
    op.execute("comment on column feed_hosts.instance is 'Of the command: two of one name show'")
    op.execute("comment on column feed_hosts.beat_at is 'Touched every few seconds'")


def downgrade() -> None:
    op.execute("drop table feed_hosts")
