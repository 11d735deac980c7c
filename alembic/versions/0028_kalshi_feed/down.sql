-- The release before knows gaps of one exchange: it would hold the other's against its markets, and ask Polymarket to fill them.
delete from coverage_gaps
where exchange <> 'polymarket' or market_key in (select market_key from markets where exchange <> 'polymarket');

delete from stage_clocks where stage = 'ingestion_kalshi';

create or replace view price_records as
select
    p.market_key, p.outcome,
    (
        select row_to_json(r)
        from (
            select
                m.market_id,
                p.outcome,
                m.token_ids[p.outcome + 1] as token_id,
                as_number(p.mid) as mid,
                as_number(p.bid) as bid,
                as_number(p.ask) as ask,
                as_number(p.ask - p.bid) as spread,
                as_number(p.bid_size) as bid_size,
                as_number(p.ask_size) as ask_size,
                as_number(p.last) as last,
                as_ms(p.last_ts) as last_ts,
                coalesce((select as_number(a.value_24h) from market_activity a where a.market_key = p.market_key), 0) as volume_24h_usd,
                as_ms(p.ts) as ts,
                greatest(0, as_ms(now()) - as_ms(p.ts)) as age_ms
        ) as r
    ) as record
from live_prices p
join markets m using (market_key)
join live_books b on b.market_key = p.market_key and b.outcome = p.outcome
where m.status = 'ACTIVE' and b.verified and (select alive from alive_feed);

create or replace view book_records as
select
    b.market_key, b.outcome,
    (
        select row_to_json(r)
        from (
            select
                m.market_id,
                b.outcome,
                m.token_ids[b.outcome + 1] as token_id,
                coalesce(bids.levels, '[]') as bids,
                coalesce(asks.levels, '[]') as asks,
                as_number(b.bid_prices[1]) as best_bid,
                as_number(b.ask_prices[1]) as best_ask,
                as_number(b.bid_prices[1]::bigint + b.ask_prices[1]) / 2 as mid,
                as_number(b.ask_prices[1] - b.bid_prices[1]) as spread,
                as_number(div(bids.worth + asks.worth, 1000000)::bigint) as depth_usd,
                as_number(b.tick_size) as tick_size,
                nullif(encode(b.hash, 'hex'), '') as hash,
                b.seq::text as seq,
                as_ms(b.ts) as ts
        ) as r
    ) as record
from book_current b
join markets m using (market_key)
cross join lateral (
    select
        json_agg((select l from (select as_number(price) as price, as_number(size) as size) as l)) as levels,
        coalesce(sum(price::numeric * size), 0) as worth
    from unnest(b.bid_prices, b.bid_sizes) as level (price, size)
) as bids
cross join lateral (
    select
        json_agg((select l from (select as_number(price) as price, as_number(size) as size) as l)) as levels,
        coalesce(sum(price::numeric * size), 0) as worth
    from unnest(b.ask_prices, b.ask_sizes) as level (price, size)
) as asks
where m.status = 'ACTIVE' and b.verified and (select alive from alive_feed);

drop view alive_exchanges;

drop view coverage_held;

create or replace function recorded_since() returns timestamptz
language sql stable parallel safe
as $$
    select coalesce(
        (select to_timestamp((value #>> '{}')::bigint / 1000.0) from settings where name = 'recorded_since'),
        (
            select min(since)
            from (
                select shards, max(first) as since
                from (
                    select coalesce(substring(feed from '/\d+of(\d+)$')::int, 1) as shards, min(ts) as first
                    from feed_stats
                    where (feed = 'polymarket' or starts_with(feed, 'polymarket/')) and messages > 0
                    group by feed
                ) as feeds
                group by shards
                having count(*) = shards
            ) as begun
        )
    );
$$;

drop function recorded_since(text);

create view coverage_held as
with live as (
    select
        tstzmultirange(tstzrange(
            since, greatest(since, last_data_at, to_timestamp((detail ->> 'written_ms')::bigint / 1000.0)), '[]'
        )) as recorded
    from (
        select
            recorded_since() as since, last_data_at, detail
        from stage_clocks
        where stage = 'ingestion'
    ) as began
    where since is not null
),
kept as (  -- retention drops whole chunks
    select
        hypertable_name as name, tstzmultirange(tstzrange(min(range_start), null)) as since
    from timescaledb_information.chunks
    where hypertable_schema = 'public' and hypertable_name in ('trades', 'book_events')
    group by 1
)
select
    'trades' as kind, 'ingestion' as stage,
    (
        coalesce((select recorded from live), '{}')
        + coalesce((
            select range_agg(tstzrange(day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC'))
            from coverage_days
            where coverage_days.kind = 'trades'
        ), '{}')
    ) * coalesce((select since from kept where name = 'trades'), '{}') as held
union all
select
    'books', 'ingestion',
    coalesce((select recorded from live), '{}') * coalesce((select since from kept where name = 'book_events'), '{}')
union all
select
    'settlements', 'settlement',
    coalesce(range_agg(tstzrange(
        (select ts from chain_blocks where number >= r.from_block order by number limit 1),
        (select ts from chain_blocks where number <= r.to_block order by number desc limit 1),
        '[]'
    )), '{}')
from chain_ranges r
where exists (select from chain_blocks where number between r.from_block and r.to_block);

delete from settings where name like 'recorded\_since\_%' or name in ('followed_kalshi');

create or replace view ranked_markets as
select
    a.market_key, a.value_1h, a.trades_1h, a.value_24h, a.trades_24h, a.value_7d, a.trades_7d, a.spike_ratio, a.price_move,
    m.market_id, m.slug, m.question, m.event_title, m.status, m.exchange, m.record,
    (
        select row_to_json(r)
        from (
            select as_number(a.value_1h) as vol_1h, as_number(a.value_24h) as vol_24h, round(a.spike_ratio::numeric, 4)::float8 as spike_ratio
        ) as r
    ) as spike,
    (
        select row_to_json(r)
        from (
            select
                as_number(a.price_now) as price_now, as_number(a.price_baseline) as price_baseline, as_number(a.price_move) as price_move
        ) as r
    ) as move
from market_activity a
join market_records m using (market_key);

delete from market_activity where exchange <> 'polymarket';

drop index market_activity_value_1h_idx;

drop index market_activity_trades_1h_idx;

drop index market_activity_value_24h_idx;

drop index market_activity_trades_24h_idx;

drop index market_activity_value_7d_idx;

drop index market_activity_trades_7d_idx;

drop index market_activity_spike_ratio_idx;

drop index market_activity_price_move_idx;

alter table market_activity drop column exchange;

create index market_activity_value_1h_idx on market_activity (value_1h desc, market_key desc);

create index market_activity_trades_1h_idx on market_activity (trades_1h desc, market_key desc);

create index market_activity_value_24h_idx on market_activity (value_24h desc, market_key desc);

create index market_activity_trades_24h_idx on market_activity (trades_24h desc, market_key desc);

create index market_activity_value_7d_idx on market_activity (value_7d desc, market_key desc);

create index market_activity_trades_7d_idx on market_activity (trades_7d desc, market_key desc);

create index market_activity_spike_ratio_idx on market_activity (spike_ratio desc nulls last, value_1h desc);

create index market_activity_price_move_idx on market_activity (abs(price_move) desc nulls last);

-- A view that is replaced keeps its columns.
drop view analytics.coverage_gaps;

create view analytics.coverage_gaps as
select g.kind, m.market_id, m.slug, g.from_ts, g.to_ts, g.cause, g.filled_at, g.filled_by
from coverage_gaps g
left join markets m using (market_key);

comment on view analytics.coverage_gaps is 'What is known to be missing, one row a gap';

comment on column analytics.coverage_gaps.kind is 'trades or books';

comment on column analytics.coverage_gaps.market_id is 'Market; null: all of them';

comment on column analytics.coverage_gaps.slug is 'Market, readable';

comment on column analytics.coverage_gaps.from_ts is 'Since when, UTC';

comment on column analytics.coverage_gaps.to_ts is 'Until when; null: still open';

comment on column analytics.coverage_gaps.cause is 'Why';

comment on column analytics.coverage_gaps.filled_at is 'When it was filled in; null: not yet, or never';

comment on column analytics.coverage_gaps.filled_by is 'By what';

drop view coverage_gap_records;

create view coverage_gap_records as
select
    gap_id as place, gap_id::text as id, kind, market_key, from_ts, to_ts, cause,
    case
        when filled_at is not null then 'filled'
        when to_ts is null then 'open'
        when kind = 'trades' then 'fillable'  -- the exchange lists its trades for ever; what its books were, nobody tells
        else 'lost'
    end as status,
    filled_at, filled_by,
    coalesce((detail ->> 'trades')::bigint, 0) + coalesce((detail ->> 'events')::bigint, 0) as added,
    detail ->> 'fault' as fault,
    null::bigint as from_block, null::bigint as to_block, shard, shards
from coverage_gaps
union all
select *, null, null from chain_holes;

drop index coverage_gaps_missing_idx;

drop index coverage_gaps_filled_idx;

alter table coverage_gaps drop column exchange;

create index coverage_gaps_missing_idx on coverage_gaps (kind, from_ts, to_ts) where filled_at is null;

create index coverage_gaps_filled_idx on coverage_gaps (kind) where filled_at is not null;
