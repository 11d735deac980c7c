-- Summaries of one market.

-- name: summary(market_key)$
-- A market's price, last 24 hours and the newest signals of them.
select json_build_object(
    'market_id', m.market_id,
    'slug', m.slug,
    'question', m.question,
    'status', m.status,
    'price', (select p.record from price_records p where p.market_key = m.market_key and p.outcome = 0),
    'stats_24h', (select s.record from stats_records s where s.market_key = m.market_key and s.outcome = 0),
    'signals', latest.signals,
    'ts', as_ms(now())
)::text
from markets m
cross join lateral (
    select coalesce(json_agg(record order by ts desc, signal_id), '[]') as signals
    from (
        select ts, signal_id, record
        from signal_records s
        where s.market_key = :market_key and s.ts > now() - interval '24 hours'
        order by ts desc, signal_id
        limit 10
    ) as s
) as latest
where m.market_key = :market_key;

-- name: stats(market_key)$
-- The last 24 hours of a market's first outcome, also when nothing was traded.
select extended(json_build_object('market_id', m.market_id, 'outcome', 0), coalesce(s.record, json_build_object(
    'open', null, 'high', null, 'low', null, 'close', null, 'volume', 0, 'volume_usd', 0, 'trades', 0,
    'price_change', null, 'price_change_pct', null, 'vwap', null,
    'window_start', as_ms(now() - interval '24 hours'), 'window_end', as_ms(now())
)))
from markets m
left join stats_records s on s.market_key = m.market_key and s.outcome = 0
where m.market_key = :market_key;

-- name: event_of(market_key)$
-- The event that a market belongs to.
select event_id from markets where market_key = :market_key;

-- name: siblings(market_key, limit)
-- The other markets of a market's event, those that end first first.
select s.record::text
from markets m
join market_records s on s.event_id = m.event_id and s.market_key <> m.market_key
where m.market_key = :market_key
order by s.end_time nulls last, s.market_key
limit :limit;

-- name: health(market_key)$
-- How fresh a market's book and price are. A quiet market is fresh as long as the feed is alive; one that has ended has neither.
with state as (
    select
        m.market_id, b.verified is null as bookless, p.market_key is null as priceless, b.verified and feed.alive as live,
        json_build_object(
            'status', case when b.verified and feed.alive then 'live' when b.verified is null then 'missing' else 'unverified' end,
            'best_bid', case when b.verified and feed.alive then as_number(b.bid_prices[1]) end,
            'best_ask', case when b.verified and feed.alive then as_number(b.ask_prices[1]) end,
            'bid_levels', coalesce(cardinality(b.bid_prices), 0),
            'ask_levels', coalesce(cardinality(b.ask_prices), 0),
            'ts', as_ms(b.ts),
            'age_ms', greatest(0, as_ms(now()) - as_ms(b.ts))
        ) as book,
        json_build_object(
            'mid', case when b.verified and feed.alive then as_number(p.mid) end,
            'ts', as_ms(p.ts),
            'age_ms', greatest(0, as_ms(now()) - as_ms(p.ts))
        ) as price
    from markets m
    cross join lateral (select m.exchange = any ((select live_exchanges())::text[]) as alive) as feed
    left join live_books b on b.market_key = m.market_key and b.outcome = 0 and m.status = 'ACTIVE'
    left join live_prices p on p.market_key = m.market_key and p.outcome = 0 and m.status = 'ACTIVE'
    where m.market_key = :market_key
),
judged as (
    select *,
        case when bookless then 'missing' when live then 'fresh' else 'stale' end as book_freshness,
        case when priceless then 'missing' when live then 'fresh' else 'stale' end as price_freshness
    from state
)
select json_build_object(
    'market_id', market_id,
    'status', case
        when 'missing' in (book_freshness, price_freshness) then 'missing'
        when 'stale' in (book_freshness, price_freshness) then 'stale'
        else 'fresh'
    end,
    'orderbook', extended(json_build_object('freshness', book_freshness), book)::json,
    'price', extended(json_build_object('freshness', price_freshness), price)::json,
    'signal_count', (select count(*) from signals s where s.market_key = :market_key and s.ts > now() - interval '24 hours'),
    'checked_at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
)::text
from judged;

-- name: liquidity(market_key, outcome)$
-- The order book of one outcome as what can be bought and sold, if it agrees with the exchange.
select json_build_object(
    'market_id', record -> 'market_id',
    'outcome', record -> 'outcome',
    'token_id', record -> 'token_id',
    'spread', record -> 'spread',
    'mid_price', record -> 'mid',
    'best_bid', record -> 'best_bid',
    'best_ask', record -> 'best_ask',
    'bids', record -> 'bids',
    'asks', record -> 'asks',
    'depth_usd', record -> 'depth_usd',
    'ts', record -> 'ts'
)::text
from (select record from book_records where market_key = :market_key and outcome = :outcome offset 0) as book;

-- name: sentiment(market_key)$
-- Where a market leans, by its price and its volume, and how many signals 24 hours have brought.
select json_build_object(
    'market_id', m.market_id,
    'sentiment', sentiment(d.open, d.close),
    'price_change_pct', change,
    'volume_trend', volume_trend(spike_ratio(a.value_1h, a.value_24h)),
    'vol_1h', coalesce(as_number(a.value_1h), 0),
    'signals_count', (select count(*) from signals s where s.market_key = :market_key and s.ts > now() - interval '24 hours'),
    'stats_24h', s.record,
    'computed_at', (select (value #>> '{}')::bigint from settings where name = 'activity_computed_at'),
    'timestamp', as_unix(now())
)::text
from markets m
left join market_activity a using (market_key)
left join stats_records s on s.market_key = m.market_key and s.outcome = 0
left join market_stats_24h d on d.market_key = m.market_key and d.outcome = 0
cross join lateral (select (s.record ->> 'price_change_pct')::float8 as change) as moved
where m.market_key = :market_key;
