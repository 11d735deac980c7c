-- Live prices as the API shows them.
create view price_records as
select
    p.market_key, p.outcome,
    json_build_object(
        'market_id', m.market_id,
        'outcome', p.outcome,
        'token_id', m.token_ids[p.outcome + 1],
        'mid', as_number(p.mid),
        'bid', as_number(p.bid),
        'ask', as_number(p.ask),
        'spread', as_number(p.ask - p.bid),
        'bid_size', as_number(p.bid_size),
        'ask_size', as_number(p.ask_size),
        'last', as_number(p.last),
        'last_ts', as_ms(p.last_ts),
        'volume_24h_usd', (select as_number(sum(value_usd)::bigint) from market_stats_24h s where s.market_key = p.market_key),
        'ts', as_ms(p.ts),
        'age_ms', greatest(0, as_ms(now()) - as_ms(p.ts))
    ) as record
from live_prices p
join markets m using (market_key);
