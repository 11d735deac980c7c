"""Since when an exchange is recorded is planned once in each session, not with each query."""

from alembic import op

revision, down_revision = "0029", "0028"

BODY = """coalesce(
        (
            select to_timestamp((value #>> '{}')::bigint / 1000.0)
            from settings
            where name = own('recorded_since', exchange)
        ),
        (
            with recursive feeds (feed) as (  -- by steps through the index: few feeds have millions of rows
                (select feed from feed_stats order by feed limit 1)
                union all
                select (select f.feed from feed_stats f where f.feed > feeds.feed order by f.feed limit 1)
                from feeds
                where feed is not null
            )
            select min(since)
            from (
                select shards, max(first) as since
                from (
                    select
                        coalesce(substring(feed from '/\\d+of(\\d+)$')::int, 1) as shards,
                        (
                            select s.ts
                            from feed_stats s
                            where s.feed = feeds.feed and s.messages > 0
                            order by s.ts
                            limit 1
                        ) as first
                    from feeds
                    where feed = exchange or starts_with(feed, exchange || '/')
                ) as firsts
                group by shards
                having count(first) = shards
            ) as begun
        )
    )"""


def upgrade() -> None:
    op.execute(f"""
create or replace function recorded_since(exchange text) returns timestamptz
language plpgsql stable parallel safe
as $$
begin
    return {BODY};
end;
$$
""")


def downgrade() -> None:
    op.execute(f"""
create or replace function recorded_since(exchange text) returns timestamptz
language sql stable parallel safe
as $$
    select {BODY};
$$
""")
