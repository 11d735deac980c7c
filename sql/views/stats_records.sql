-- The last 24 hours of each outcome as the API shows them.
create view stats_records as
select
    market_key, outcome,
    json_build_object(
        'open', as_number(open),
        'high', as_number(high),
        'low', as_number(low),
        'close', as_number(close),
        'volume', as_number(volume),
        'volume_usd', as_number(value_usd),
        'trades', trades,
        'price_change', as_number(close - open),
        'price_change_pct', round((close - open) * 100.0 / nullif(open, 0), 4)::double precision,
        'vwap', round(value_usd::numeric / nullif(volume, 0), 6)::double precision,
        'window_start', as_ms(window_start),
        'window_end', as_ms(window_end)
    ) as record
from market_stats_24h;
