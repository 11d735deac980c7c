-- What is held of each kind of an exchange, as stretches of time: between their ends nothing is missing but what `coverage_gap_records` names.
-- An exchange that is off and of which nothing was ever recorded has no rows.
create view coverage_held as
with live as (
    select
        exchange, stage,
        case when since is not null then tstzmultirange(tstzrange(
            since, greatest(since, last_data_at, to_timestamp((detail ->> 'written_ms')::bigint / 1000.0)), '[]'
        )) else '{}' end as recorded
    from exchange_feeds() feeds
    join stage_clocks using (stage)
    cross join lateral (select recorded_since(exchange) as since) as began
    where not detail ? 'off' or since is not null or exists (select from coverage_days d where d.kind = own('trades', feeds.exchange))
),
kept as (  -- retention drops whole chunks
    select
        hypertable_name as name, tstzmultirange(tstzrange(min(range_start), null)) as since
    from timescaledb_information.chunks
    where hypertable_schema = 'public' and hypertable_name in ('trades', 'book_events')
    group by 1
)
select
    'trades' as kind, stage,
    (
        recorded
        + coalesce((
            select range_agg(tstzrange(day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC'))
            from coverage_days
            where coverage_days.kind = own('trades', live.exchange)
        ), '{}')
    ) * coalesce((select since from kept where name = 'trades'), '{}') as held,
    exchange
from live
union all
select 'books', stage, recorded * coalesce((select since from kept where name = 'book_events'), '{}'), exchange
from live
union all
select
    'settlements', 'settlement',
    coalesce(range_agg(tstzrange(
        (select ts from chain_blocks where number >= r.from_block order by number limit 1),
        (select ts from chain_blocks where number <= r.to_block order by number desc limit 1),
        '[]'
    )), '{}'),
    'polymarket'
from chain_ranges r
where exists (select from chain_blocks where number between r.from_block and r.to_block);
