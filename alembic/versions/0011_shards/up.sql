create function shard_of(market_id text, shards integer) returns integer
language sql immutable strict parallel safe
return case when market_id ~ '[0-9a-f]{7}$' then ('x' || right(market_id, 7))::bit(28)::integer % shards + 1 else 1 end;

create function in_shard(market_id text, shard integer, shards integer) returns boolean
language sql immutable parallel safe
return shard is null or shard_of(market_id, shards) = shard;

create function feed_of(family text, shard integer, shards integer) returns text
language sql immutable strict parallel safe
return case when shards = 1 then family else family || '/' || shard::text || 'of' || shards::text end;

alter table coverage_gaps add column shard integer, add column shards integer;
comment on column coverage_gaps.shard is 'With `shards`: only markets of this shard, of so many; null: of every one';
comment on column coverage_gaps.market_key is 'Null: every market of the feed, or of the shard';

create function gap_falls_to(market_id text, of_shard integer, of_shards integer, shard integer, shards integer) returns boolean
language sql immutable parallel safe
return case
    when market_id is not null then shard_of(market_id, shards) = shard
    when coalesce(of_shards, 1) % shards = 0 then (coalesce(of_shard, 1) - shard) % shards = 0
end;

create function recorded_since() returns timestamptz
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

create or replace view coverage_gap_records as
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

create or replace view coverage_held as
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
