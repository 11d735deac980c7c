"""Sentiment is judged by odds and cents instead of a relative change."""

from alembic import op

revision, down_revision = "0007", "0006"


def upgrade() -> None:
    op.execute("drop function sentiment(double precision)")
    op.execute("""
create function sentiment(before bigint, after bigint) returns text
language sql immutable parallel safe
return case
    when abs(after - before) < 20000 then 'neutral'
    when after * (1000000.0::float8 - before) > 1.125 * before * (1000000.0::float8 - after) then 'bullish'
    when before * (1000000.0::float8 - after) > 1.125 * after * (1000000.0::float8 - before) then 'bearish'
    else 'neutral'
end
""")


def downgrade() -> None:
    op.execute("drop function sentiment(bigint, bigint)")
    op.execute("""
create function sentiment(price_change_pct double precision) returns text
language sql immutable parallel safe
return case when price_change_pct > 5 then 'bullish' when price_change_pct < -5 then 'bearish' else 'neutral' end
""")
