-- The last 24 hours of each outcome as the API shows them.
create view stats_records as
select
    market_key, outcome,
    (
        select row_to_json(r)
        from (
            select
                as_number(open) as open,
                as_number(high) as high,
                as_number(low) as low,
                as_number(close) as close,
                as_number(volume) as volume,
                as_number(value_usd) as volume_usd,
                trades,
                as_number(close - open) as price_change,
                round((close - open) * 100.0 / nullif(open, 0), 4)::double precision as price_change_pct,
                round(value_usd::numeric / nullif(volume, 0), 6)::double precision as vwap,
                as_ms(window_start) as window_start,
                as_ms(window_end) as window_end
        ) as r
    ) as record
from market_stats_24h;
