-- Markets, listed and one by one.

-- name: found(id)^
-- The market's facts that a request needs, by condition id, the exchange's number, or slug (an open market before an ended
-- one).
select market_key, market_id, outcomes, token_ids
from markets
where market_id = :id or gamma_id = :id or slug = :id
order by market_id = :id desc, gamma_id = :id desc nulls last, status = 'ACTIVE' desc, market_key desc
limit 1;

-- name: generation()$
-- The newest ranking.
select max(generation) from market_rankings;

-- name: generation_kept(generation)$
-- Whether cursors may still use a ranking.
select exists (select from market_rankings where generation = :generation and rank = 1);

-- name: ranked(generation, after, status, category, tag, series, exchange, limit, offset)
-- Markets of one ranking, most active first, each with what it was ranked by. Records are made of those returned only, not of those
-- an offset skips.
select k.rank, extended(r.record, json_build_object('period_volume_usd', as_number(k.value_usd)))
from (
    select k.rank, k.market_key, k.value_usd
    from market_rankings k
    join markets m using (market_key)
    where k.generation = :generation and k.rank > :after
        and (:status::text is null or m.status = :status)
        and (:category::text is null or m.category = :category)
        and (:tag::text is null or m.tags @> array[:tag::text])
        and (:series::text is null or m.series = :series)
        and (:exchange::text is null or m.exchange = :exchange)
    order by k.rank
    limit :limit offset :offset
) as k
join market_records r using (market_key)
order by k.rank;

-- name: count_ranked(generation, status, category, tag, series, exchange)$
-- How many markets of one ranking pass the filter.
select count(*)
from market_rankings k
-- One by one, by their key: not knowing the filter, the planner would rather read all markets.
cross join lateral (
    select from markets m
    where m.market_key = k.market_key
        and (:status::text is null or m.status = :status)
        and (:category::text is null or m.category = :category)
        and (:tag::text is null or m.tags @> array[:tag::text])
        and (:series::text is null or m.series = :series)
        and (:exchange::text is null or m.exchange = :exchange)
    offset 0
) as m
where k.generation = :generation;

-- name: unranked(generation, before, status, category, tag, series, exchange, limit, offset)
-- Markets that a ranking does not have, newest first. The keys ascend, so one that is added during pagination is not returned
-- twice.
select market_key, extended(r.record, json_build_object('period_volume_usd', case when :generation > 0 then 0 end))
from (
    select m.market_key
    from markets m
    where m.market_key < :before
        and not exists (select from market_rankings k where k.generation = :generation and k.market_key = m.market_key)
        and (:status::text is null or m.status = :status)
        and (:category::text is null or m.category = :category)
        and (:tag::text is null or m.tags @> array[:tag::text])
        and (:series::text is null or m.series = :series)
        and (:exchange::text is null or m.exchange = :exchange)
    order by m.market_key desc
    limit :limit offset :offset
) as m
join market_records r using (market_key)
order by market_key desc;

-- name: detail(market_key)$
-- A market with its live price, the state of its order book, and its last 24 hours.
select left(m.record::text, -1) || ',' || substr(extra::text, 2)
from market_records m
cross join alive_feed as feed
left join live_books b on b.market_key = m.market_key and b.outcome = 0 and m.status = 'ACTIVE'
cross join lateral (
    select json_build_object(
        'description', (select description from markets d where d.market_key = m.market_key),
        'price', (select p.record from price_records p where p.market_key = m.market_key and p.outcome = 0),
        'orderbook', json_build_object(
            'status', case when b.verified and feed.alive then 'live' when b.verified is null then 'missing' else 'unverified' end,
            'best_bid', case when b.verified and feed.alive then as_number(b.bid_prices[1]) end,
            'best_ask', case when b.verified and feed.alive then as_number(b.ask_prices[1]) end,
            'bid_levels', coalesce(cardinality(b.bid_prices), 0),
            'ask_levels', coalesce(cardinality(b.ask_prices), 0),
            'ts', as_ms(b.ts),
            'age_ms', greatest(0, as_ms(now()) - as_ms(b.ts))
        ),
        'stats_24h', (select s.record from stats_records s where s.market_key = m.market_key and s.outcome = 0)
    ) as extra
) as beside
where m.market_key = :market_key;

-- name: platform()$
-- Platform totals. The 24 hours are as old as their oldest part: unchanged figures are rewritten every five minutes only.
select json_build_object(
    'total_markets', (select count(*) from markets),
    'active_markets', (select count(*) from markets where status = 'ACTIVE'),
    'volume_24h_usd', coalesce(as_number(sum(value_usd)::bigint), 0),
    'trades_24h', coalesce(sum(trades), 0),
    'onchain_trades_total', (select trades from chain_heads where feed = 'settlement'),
    'last_ingested_at', (select as_unix(last_data_at) from stage_clocks where stage = 'ingestion'),
    'computed_at', as_unix(max(computed_at))
)::text
from market_stats_24h;
