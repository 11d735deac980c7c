"""The bitmaps and the table of active markets have the markets that were there before them.

A block of markets at a time, each in a transaction of its own in which nobody else writes markets. Whoever writes in
between changes bits of blocks that are not filled yet: a block is filled from nothing. So an interrupted migration can
be run again.
"""

from alembic import context, op

revision, down_revision = "0018", "0017"

BLOCK = 16_384  # markets
FILL = (
    "lock table markets in share row exclusive mode",
    "delete from market_bitmaps where block = %(block)s and kind <> 'ranking'",
    """
    insert into market_bitmaps (kind, name, block, bits)
    select kind, name, %(block)s, bit_or(bits::bit(16384) >> ((word & 255) << 6))
    from (
        select kind, name, market_key >> 6 as word, bit_or(1::bigint << (63 - (market_key & 63)))::bit(64) as bits
        from markets
        cross join lateral market_names(status, exchange, category, series, tags)
        where market_key between %(first)s and %(last)s
        group by kind, name, word
    ) as words
    group by kind, name
    """,
    """
    insert into open_markets (market_key, end_time, exchange, titles)
    select market_key, end_time, exchange, lower(concat_ws(E'\\n', question, slug, event_title))
    from markets
    where market_key between %(first)s and %(last)s and status = 'ACTIVE'
    order by market_key
    on conflict (market_key) do nothing
    """,
)
# Of the newest ranking only: cursors of an older one end.
FILL_RANKING = """
    insert into market_bitmaps (kind, name, block, bits)
    select 'ranking', generation::text, word >> 8, bit_or(bits::bit(16384) >> ((word & 255) << 6))
    from (
        select generation, market_key >> 6 as word, bit_or(1::bigint << (63 - (market_key & 63)))::bit(64) as bits
        from market_rankings
        where generation = (select max(generation) from market_rankings)
        group by generation, word
    ) as words
    group by generation, word >> 8
    on conflict do nothing
"""


def upgrade() -> None:
    if context.is_offline_mode():  # from nothing
        return
    with op.get_context().autocommit_block():
        conn = op.get_bind().connection.driver_connection
        (blocks,) = conn.execute("select coalesce(max(market_key) / %s + 1, 0) from markets", [BLOCK]).fetchone()
        for block in range(blocks):
            with conn.transaction():
                for statement in FILL:
                    conn.execute(statement, {"block": block, "first": block * BLOCK, "last": (block + 1) * BLOCK - 1})
        conn.execute(FILL_RANKING)


def downgrade() -> None:
    pass
