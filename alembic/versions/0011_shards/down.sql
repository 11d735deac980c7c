create or replace view coverage_held as
with live as (
    select
        tstzmultirange(tstzrange(
            since, greatest(since, last_data_at, to_timestamp((detail ->> 'written_ms')::bigint / 1000.0)), '[]'
        )) as recorded
    from (
        select
            coalesce(
                (select to_timestamp((value #>> '{}')::bigint / 1000.0) from settings where name = 'recorded_since'),
                (select ts from feed_stats where feed = 'polymarket' and messages > 0 order by ts limit 1)
            ) as since,
            last_data_at, detail
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
    null::bigint as from_block, null::bigint as to_block
from coverage_gaps
union all
select * from chain_holes;

drop function recorded_since();
drop function gap_falls_to(text, integer, integer, integer, integer);
alter table coverage_gaps drop column shard, drop column shards;
comment on column coverage_gaps.market_key is 'Null: every market of the feed';
drop function feed_of(text, integer, integer);
drop function in_shard(text, integer, integer);
drop function shard_of(text, integer);
