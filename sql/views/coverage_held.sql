-- What is held of each kind of an exchange, as stretches of time: between their ends nothing is missing but what `coverage_gap_records` names.
-- An exchange whose feed has never recorded has no rows but Polymarket.
create view coverage_held as
with live as (
    select
        exchange, stage,
        case when since is not null then tstzmultirange(tstzrange(
            since, greatest(since, last_data_at, to_timestamp((detail ->> 'written_ms')::bigint / 1000.0)), '[]'
        )) else '{}' end as recorded
    from (values ('polymarket', 'ingestion'), ('kalshi', 'ingestion_kalshi')) as feeds (exchange, stage)
    join stage_clocks using (stage)
    cross join lateral (select recorded_since(exchange) as since) as began
    where since is not null or exchange = 'polymarket'
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
        + coalesce((  -- days are reconciled with Polymarket's list
            select range_agg(tstzrange(day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC'))
            from coverage_days
            where coverage_days.kind = 'trades' and exchange = 'polymarket'
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
