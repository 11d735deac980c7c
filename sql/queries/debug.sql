-- Stored data in raw form: amounts are micro-units, times are text.

-- name: markets(limit)$
-- The feed's runs, and the stored state of the outcomes of the most active markets.
select json_build_object(
    'feeds', (select coalesce(json_agg(row_to_json(l) order by l.beat_at desc), '[]') from feed_leases l),
    'stages', (select coalesce(json_agg(row_to_json(s) order by s.stage), '[]') from pipeline_status s),
    'outcomes', (select coalesce(json_agg(row_to_json(o) order by k.rank, o.outcome), '[]')
        from (
            select rank, market_key from market_rankings
            where generation = (select max(generation) from market_rankings)
            order by rank
            limit :limit
        ) as k
        cross join lateral (
            select m.market_id, m.slug, m.status, p.*, b.verified, b.seq, b.ts as book_ts,
                cardinality(b.bid_prices) as bid_levels, cardinality(b.ask_prices) as ask_levels
            from markets m
            join live_prices p using (market_key)
            left join live_books b on b.market_key = p.market_key and b.outcome = p.outcome
            where m.market_key = k.market_key
            offset 0
        ) as o
    )
)::text;

-- name: market(market_key)$
-- All stored data of one market.
select json_build_object(
    'market', row_to_json(m),
    'tokens', (select coalesce(json_agg(row_to_json(t) order by t.outcome), '[]') from tokens t where t.market_key = m.market_key),
    'status_changes', (
        select coalesce(json_agg(row_to_json(c) order by c.change_id), '[]') from market_status_changes c where c.market_key = m.market_key
    ),
    'prices', (select coalesce(json_agg(row_to_json(p) order by p.outcome), '[]') from live_prices p where p.market_key = m.market_key),
    'books', (select coalesce(json_agg(row_to_json(b) order by b.outcome), '[]') from live_books b where b.market_key = m.market_key),
    'stats_24h', (select coalesce(json_agg(row_to_json(s) order by s.outcome), '[]') from market_stats_24h s where s.market_key = m.market_key),
    'activity', (select row_to_json(a) from market_activity a where a.market_key = m.market_key)
)::text
from markets m
where m.market_key = :market_key;

-- name: trades(limit)$
-- The newest trades.
select coalesce(json_agg(row_to_json(t) order by t.ts desc, t.seq desc), '[]')::text
from (select * from trades where ts > now() - interval '1 day' order by ts desc, seq desc limit :limit) as t;

-- name: orderbook(market_key, limit)$
-- The books of one market, unverified ones included, and the newest changes of each.
select json_build_object(
    'books', (select coalesce(json_agg(row_to_json(b) order by b.outcome), '[]') from live_books b where b.market_key = m.market_key),
    'events', (select coalesce(json_agg(row_to_json(e) order by e.outcome, e.ts desc, e.seq desc), '[]') from (
        select newest.*
        from generate_series(0, cardinality(m.outcomes) - 1) as place
        cross join lateral (
            select * from book_events e
            where e.market_key = :market_key and e.outcome = place and e.ts > now() - interval '1 day'
            order by e.ts desc, e.seq desc
            limit :limit
        ) as newest
    ) as e)
)::text
from markets m
where m.market_key = :market_key;
