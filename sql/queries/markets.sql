-- Markets, listed and one by one.

-- name: found(id)^
-- The market's facts that a request needs, by its id, the exchange's number, or slug (an open market before an ended
-- one).
select market_key, market_id, outcomes, token_ids, exchange
from markets
where market_id = :id or gamma_id = :id or slug = :id
order by market_id = :id desc, gamma_id = :id desc nulls last, status = 'ACTIVE' desc, market_key desc
limit 1;

-- name: generation()$
-- The newest ranking.
select max(name)::bigint from market_bitmaps where kind = 'ranking';

-- name: generation_kept(generation)$
-- Whether cursors may still use a ranking. One from before there were bitmaps has none.
select exists (select from market_rankings where generation = :generation and rank = 1)
    and exists (select from market_bitmaps where kind = 'ranking' and name = :generation::bigint::text);

-- name: skip_ranked(generation, kinds, names, offset)^
-- How many markets of one ranking have all of these names; the last rank of those bands of ranks that the offset skips as a whole; and how
-- many such markets these have.
with named as materialized (
    select block, bits
    from markets_named(array_append(:kinds::text[], 'ranking'), array_append(:names::text[], :generation::bigint::text))
),
blocks as materialized (
    select array_agg(bits order by block) as bits
    from named
    right join generate_series(0, (select max(block) from named)) as block using (block)
),
bands as (
    select band, sum(sum(bit_count(ranks.bits & (select bits from blocks)[block + 1]))) over (order by band) as reached
    from generate_series(0, (select max(rank) >> 15 from market_rankings where generation = :generation)) as band
    cross join lateral (
        select block, bits from market_bitmaps where kind = 'ranks' and name = :generation::bigint || '/' || band offset 0
    ) as ranks
    group by band
)
select
    (select coalesce(sum(bit_count(bits)), 0)::bigint from named),
    coalesce(((max(band) + 1) << 15) - 1, 0),
    coalesce(max(reached), 0)::bigint
from bands
where reached <= :offset::bigint;

-- name: ranked(generation, after, kinds, names, limit, offset, few)
-- Markets of one ranking that have all of these names, most active first, each with what it was ranked by: if they are few, all of
-- them are sorted, else the ranking is walked until enough are found. Records are made of those returned only, not of those an offset
-- skips.
with named as materialized (
    select block, bits
    from markets_named(array_append(:kinds::text[], 'ranking'), array_append(:names::text[], :generation::bigint::text))
),
counted as materialized (
    select coalesce(sum(bit_count(bits)), 0) <= :few::integer as few from named
),
-- The newest first: an array is searched from its beginning, and most active markets are new.
blocks as materialized (
    select array_agg(coalesce(bits, 0::bit(16384)) order by block desc) as bits, max(block) as last
    from named
    right join generate_series(0, (select max(block) from named)) as block using (block)
),
found as (
    (
        select k.rank, key as market_key, k.value_usd
        from named
        cross join lateral market_keys(named.block, named.bits) as key
        -- One by one: not knowing how few they are, the planner would rather read the whole ranking.
        cross join lateral (
            select rank, value_usd from market_rankings r where r.generation = :generation and r.market_key = key offset 0
        ) as k
        where (select few from counted) and bit_count(named.bits) > 0 and k.rank > :after
        order by k.rank
        limit :limit offset :offset
    )
    union all
    (
        select k.rank, k.market_key, k.value_usd
        from market_rankings k
        where not (select few from counted) and k.generation = :generation and k.rank > :after
            -- Not `= 1`, of which the planner expects so few that it would rather sort the whole ranking.
            and get_bit((select bits from blocks)[(select last from blocks) - (k.market_key >> 14) + 1], k.market_key & 16383) <> 0
        order by k.rank
        limit :limit offset :offset
    )
)
select k.rank, extended(r.record, json_build_object('period_volume_usd', as_number(k.value_usd)))
from found k
join market_records r using (market_key)
order by k.rank;

-- name: unranked(generation, before, kinds, names, limit, offset)
-- Markets with all of these names that a ranking does not have, newest first. The keys ascend, so one that is added during pagination
-- is not returned twice.
with named as materialized (
    select
        n.block,
        n.bits & ~coalesce(r.bits, 0::bit(16384)) & case
            when n.block = :before::bigint >> 14 then ~(~(0::bit(16384)) >> (:before::bigint & 16383)::integer)
            else ~(0::bit(16384))
        end as bits
    from markets_named(:kinds, :names) as n
    left join market_bitmaps r on r.kind = 'ranking' and r.name = :generation::bigint::text and r.block = n.block
    where n.block <= :before::bigint >> 14
),
summed as materialized (
    select block, bits, sum(bit_count(bits)) over (order by block desc) as total, bit_count(bits) as own from named
),
-- The first of them is not necessarily skipped as a whole.
first as (
    select coalesce(max(total - own), 0) as skipped
    from summed
    where own > 0 and total - own <= :offset::bigint
),
found as materialized (
    select key as market_key
    from summed
    cross join lateral market_keys(block, bits) as key
    where own > 0 and total > :offset::bigint and total - own < :offset::bigint + :limit::bigint
    order by key desc
    limit :limit offset :offset::bigint - (select skipped from first)
)
select market_key, extended(r.record, json_build_object('period_volume_usd', case when :generation > 0 then 0 end))
from found
join market_records r using (market_key)
order by market_key desc;

-- name: detail(market_key)$
-- A market with its live price, the state of its order book, and its last 24 hours.
select left(m.record::text, -1) || ',' || substr(extra::text, 2)
from market_records m
cross join lateral (select m.exchange = any ((select live_exchanges())::text[]) as alive) as feed
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

-- name: platform(exchange, stage, has_chain)$
-- Totals of an exchange, whose feed has a stage. The 24 hours are as old as their oldest part: unchanged figures are rewritten every five minutes only.
select json_build_object(
    'total_markets', listed.markets,
    'active_markets', listed.active,
    'volume_24h_usd', coalesce(as_number(traded.value_usd), 0),
    'trades_24h', traded.trades,
    'onchain_trades_total', (select trades from chain_heads where feed = 'settlement' and :has_chain::boolean),
    'last_ingested_at', (select as_unix(last_data_at) from stage_clocks where stage = :stage),
    'computed_at', as_unix(traded.computed_at)
)::text
from (  -- in one pass, as most of the time is theirs
    select count(*) as markets, count(*) filter (where status = 'ACTIVE') as active from markets where exchange = :exchange
) as listed
cross join (
    select sum(value_usd)::bigint as value_usd, coalesce(sum(trades), 0) as trades, max(computed_at) as computed_at
    from market_stats_24h
    where exchange = :exchange
) as traded;
