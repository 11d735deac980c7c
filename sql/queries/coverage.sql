-- Coverage: stored data, gaps with their causes, and the reconciliation with the sources.

-- --- For readers ----------------------------------------------------------------------------------------------------------------

-- name: kinds(exchange)$
-- Each kind of data of an exchange: from when to when, how many gaps of which state, how long they last together, up to which day it was
-- reconciled; `off`, what it has not or what was never recorded of it. Planned for any exchange: planning anew takes longer than reading.
with asked as materialized (select :exchange::text as exchange)
select coalesce(json_agg(coverage_record(
    kind, case when p.off or h.stage is null then 'off' else p.status end, coalesce(h.held, '{}'), g.missing,
    coalesce(g.open, 0), coalesce(g.fillable, 0), coalesce(g.lost, 0), coalesce(f.filled, 0),
    (select max(day) from coverage_days d where d.kind = own(k.kind, (select exchange from asked)))
) order by k.place), '[]')::text
from unnest(array['trades', 'books', 'settlements']) with ordinality as k (kind, place)
left join (select * from coverage_held where exchange = (select exchange from asked)) as h using (kind)
left join pipeline_status p using (stage)
left join (
    select
        kind, count(*) filter (where to_ts is null) as open, count(*) filter (where to_ts is not null and kind = 'trades') as fillable,
        count(*) filter (where to_ts is not null and kind <> 'trades') as lost, range_agg(gap_span(from_ts, to_ts)) as missing
    from coverage_gaps
    where filled_at is null and exchange = (select exchange from asked)
    group by kind
    union all
    select kind, 0, count(*), 0, range_agg(gap_span(from_ts, to_ts))
    from chain_holes
    where (select exchange from asked) = 'polymarket'
    group by kind
) as g using (kind)
left join (
    select kind, count(*) as filled
    from coverage_gaps
    where filled_at is not null and exchange = (select exchange from asked)
    group by kind
) as f using (kind);

-- name: kinds_of_market(market_key)$
-- The same of one market, as far as it existed, and its first and last row.
with market as (
    select
        market_id, exchange, outcomes, token_ids,
        tstzmultirange(tstzrange(listed_at, case when closed_at is not null then greatest(listed_at, closed_at) end)) as life
    from (select *, coalesce(created_at, first_seen_at) as listed_at from markets where market_key = :market_key) as m
),
ends (kind, first, last) as materialized (
    select 'trades', min(t.first), max(t.last)
    from market m
    cross join generate_series(0, cardinality(m.outcomes) - 1) as place
    cross join lateral (
        select
            (select ts from trades where market_key = :market_key and outcome = place order by ts limit 1) as first,
            (select ts from trades where market_key = :market_key and outcome = place order by ts desc limit 1) as last
    ) as t
    union all
    select 'books', min(q.first), max(q.last)
    from market m
    cross join generate_series(0, cardinality(m.outcomes) - 1) as place
    cross join lateral (
        select
            (select ts from quotes where market_key = :market_key and outcome = place order by ts limit 1) as first,
            (select ts from quotes where market_key = :market_key and outcome = place order by ts desc limit 1) as last
    ) as q
    union all
    select 'settlements', min(s.first), max(s.last)
    from market m
    join chain_tokens k on k.token_id = any(m.token_ids)
    cross join lateral (
        select
            (select ts from settlements where token_key = k.token_key order by ts limit 1) as first,
            (select ts from settlements where token_key = k.token_key order by ts desc limit 1) as last
    ) as s
),
known as materialized (
    select e.kind, h.stage, coalesce(h.held, '{}') * m.life as held, e.first, e.last, m.market_id, m.exchange
    from market m
    cross join ends e
    left join coverage_held h on h.kind = e.kind and h.exchange = m.exchange
)
select coalesce(json_agg(extended(
    coverage_record(
        h.kind, case when p.off or h.stage is null then 'off' else p.status end, h.held, g.missing, g.open, g.fillable, g.lost, g.filled,
        (select max(day) from coverage_days d where d.kind = own(h.kind, h.exchange))
    ),
    json_build_object('first_ts', as_ms(h.first), 'last_ts', as_ms(h.last))
)::json order by array_position(array['trades', 'books', 'settlements'], h.kind)), '[]')::text
from known h
left join pipeline_status p using (stage)
cross join lateral (
    select
        count(*) filter (where r.status = 'open') as open, count(*) filter (where r.status = 'fillable') as fillable,
        count(*) filter (where r.status = 'lost') as lost, count(*) filter (where r.status = 'filled') as filled,
        range_agg(gap_span(r.from_ts, r.to_ts)) filter (where r.status <> 'filled') as missing
    from coverage_gap_records r
    where r.kind = h.kind and (
            r.market_key = :market_key
            or r.market_key is null and r.exchange = h.exchange and in_shard(h.market_id, r.shard, r.shards)
        )
        and h.held && gap_span(r.from_ts, r.to_ts)
) as g;

-- name: gaps(exchange, kind, status, since, until, before_ts, before_place, limit)
-- Gaps of all markets of an exchange, latest start first, after a position in that order.
select
    g.from_ts, g.place,
    extended(
        coverage_gap(
            g.id, g.kind, m.market_id, g.from_ts, g.to_ts, g.cause, g.status, g.filled_at, g.filled_by, g.added, g.fault, g.from_block,
            g.to_block
        )::json,
        json_build_object('shard', g.shard || '/' || g.shards)
    )
from (
    select *
    from coverage_gap_records
    where exchange = :exchange and (:kind::text is null or kind = :kind::text) and (:status::text is null or status = :status::text)
        and from_ts < :until::timestamptz and coalesce(to_ts, 'infinity') >= :since::timestamptz
        and (from_ts, place) < (:before_ts::timestamptz, :before_place::bigint)
    order by from_ts desc, place desc
    limit :limit
) as g
left join markets m using (market_key)
order by g.from_ts desc, g.place desc;

-- name: gaps_of_market(market_key, kind, status, since, until, before_ts, before_place, limit)
-- The same of one market: its own, and those of all markets while it existed.
select
    g.from_ts, g.place,
    extended(
        coverage_gap(
            g.id, g.kind, case when g.market_key is not null then m.market_id end, g.from_ts, g.to_ts, g.cause, g.status, g.filled_at,
            g.filled_by, g.added, g.fault, g.from_block, g.to_block
        )::json,
        json_build_object('shard', g.shard || '/' || g.shards)
    )
from markets m
cross join lateral (
    select *
    from (
        select * from coverage_gap_records where market_key = :market_key
        union all
        select * from coverage_gap_records
        where market_key is null and exchange = m.exchange and in_shard(m.market_id, shard, shards) and from_ts < coalesce(m.closed_at, 'infinity')
            and coalesce(to_ts, 'infinity') >= coalesce(m.created_at, m.first_seen_at)
    ) as r
    where (:kind::text is null or kind = :kind::text) and (:status::text is null or status = :status::text)
        and from_ts < :until::timestamptz and coalesce(to_ts, 'infinity') >= :since::timestamptz
        and (from_ts, place) < (:before_ts::timestamptz, :before_place::bigint)
    order by from_ts desc, place desc
    limit :limit
) as g
where m.market_key = :market_key
order by g.from_ts desc, g.place desc;

-- name: days(exchange)$
-- The last days of an exchange that were reconciled, newest first.
select coalesce(json_agg(json_build_object(
    'day', day, 'kind', k.kind, 'source', case k.kind when 'trades' then 'exchange' else 'chain' end, 'listed', listed, 'held', held,
    'added', added, 'unlisted', unlisted, 'unknown', unknown, 'agrees', agrees, 'checked_at', as_unix(checked_at)
) order by day desc, k.kind desc), '[]')::text
from unnest(array['trades', 'settlements']) as k (kind)
join coverage_days d on d.kind = own(k.kind, :exchange::text)
where day >= (
    select max(day) from coverage_days where kind = any (array[own('trades', :exchange::text), own('settlements', :exchange::text)])
) - 30;

-- name: days_of_market(market_key)$
-- The same of the trades of one market, since it was listed.
select coalesce(json_agg(json_build_object(
    'day', d.day, 'kind', 'trades', 'source', 'exchange', 'listed', coalesce(c.listed, 0), 'held', coalesce(c.held, 0),
    'added', coalesce(c.added, 0), 'unlisted', coalesce(c.unlisted, 0), 'unknown', 0,
    'agrees', coalesce(c.held = c.listed and c.unlisted = 0, true), 'checked_at', as_unix(d.checked_at)
) order by d.day desc), '[]')::text
from coverage_days d
join markets m on m.market_key = :market_key
left join coverage_market_days c on c.day = d.day and c.market_key = :market_key
where d.kind = own('trades', m.exchange) and d.day >= (select max(day) from coverage_days where kind = own('trades', m.exchange)) - 30
    and d.day >= (coalesce(m.created_at, m.first_seen_at) at time zone 'UTC')::date
    and d.day <= coalesce((m.closed_at at time zone 'UTC')::date, 'infinity');

-- --- For reconciliation and filling ---------------------------------------------------------------------------------------------

-- name: remember_since()!
-- Stores since when the live feeds have recorded: their figures contain that, and they are dropped some day.
insert into settings (name, value)
select replace(stage, 'ingestion', 'recorded_since'), to_jsonb(as_ms(since))
from exchange_feeds()
cross join lateral (select recorded_since(exchange) as since) as began
where since is not null
on conflict (name) do nothing;

-- name: recorded_since(exchange)$
-- Since when an exchange's live feed has recorded, in ms; null if it never did.
select as_ms(recorded_since(:exchange::text));

-- name: recorded_span(exchange)^
-- Since when an exchange's live feed has recorded, null if it never did; and when it was turned off, null while it is on.
select recorded_since(:exchange::text), (
    select last_data_at from stage_clocks where stage = own('ingestion', :exchange) and detail ? 'off'
);

-- name: gaps_left(exchange, settled_s, most)
-- Gaps in an exchange's trades that have ended and that nobody has filled in: id, market (null: all of a shard), shard, shards, from and to in ms,
-- markets that an earlier attempt did not know.
select gap_id, market_key, shard, shards, as_ms(from_ts), as_ms(to_ts), nullif(detail -> 'unknown_markets', 'null')
from coverage_gaps
where kind = 'trades' and exchange = :exchange and filled_at is null and to_ts < now() - make_interval(secs => :settled_s::float8)
    and coalesce((detail ->> 'next_at')::float8, 0) < date_part('epoch', now())
order by from_ts desc
limit :most;

-- name: filled_to(gap_ids)$
-- Up to when (ms) gaps have been filled by unfinished passes; 0: not begun.
select coalesce(min(coalesce((detail ->> 'filled_to_ms')::bigint, 0)), 0) from coverage_gaps where gap_id = any(:gap_ids::bigint[]);

-- name: note_filled_to(gap_ids, to_ms, unknown_markets)!
-- Stores how far a pass has come, and the markets with remaining trades, as the catalogue does not know them.
update coverage_gaps
set detail = detail || jsonb_build_object('filled_to_ms', :to_ms::bigint, 'unknown_markets', to_jsonb(:unknown_markets::text[]))
where gap_id = any(:gap_ids::bigint[]);

-- name: gap_counts()
-- How many gaps there are, by kind and state.
select kind, status, count(*) from coverage_gap_records group by 1, 2 order by 1, 2;

-- name: tokens_named(token_ids)
-- Tokens as the feed knows them, of markets in any state.
select t.token_id, m.market_id, t.market_key, t.outcome
from tokens t
join markets m using (market_key)
where t.token_id = any(:token_ids::text[]);

-- name: trades_held(exchange, since, until)
-- Every trade of an exchange in a time range: its market, its ID, and whether it was recorded from a print without a transaction hash.
select market_key, trade_id, tx_hash is null
from trades t
where ts >= :since and ts < :until and exists (select from markets m where m.market_key = t.market_key and m.exchange = :exchange);

-- name: trades_named(market_keys, trade_ids, since, until)
-- Which of some trades are stored: market and ID.
select t.market_key, t.trade_id
from unnest(:market_keys::int[], :trade_ids::bigint[]) as asked (market_key, trade_id)
join trades t using (market_key, trade_id)
where t.ts >= :since and t.ts < :until;

-- name: note_missed(exchange, market_keys, instants, cause, filled_by)!
-- Trades of an exchange that were missing in no known gap, in the transaction that stores them: one gap per market and day (UTC), which each call extends.
with added as materialized (
    select * from unnest(:market_keys::int[], :instants::timestamptz[]) as a (market_key, ts)
),
known as materialized (  -- trade by trade against gap by gap, hundreds of thousands of both would take hours
    select
        market_key, shard, shards,
        -- The exchange's timestamps are in seconds.
        range_agg(tstzrange(from_ts - interval '2 seconds', greatest(from_ts, coalesce(to_ts, 'infinity')) + interval '2 seconds', '[]')) as spans
    from coverage_gaps
    where kind = 'trades' and exchange = :exchange and cause <> :cause and from_ts <= (select max(ts) from added) + interval '2 seconds'
        and coalesce(to_ts, 'infinity') >= (select min(ts) from added) - interval '2 seconds'
    group by market_key, shard, shards
),
missed as (
    select
        a.market_key, date_trunc('day', a.ts, 'UTC') as day, min(a.ts) as from_ts, max(a.ts) as to_ts, count(*) as trades
    from added a
    left join known of_market on of_market.market_key = a.market_key
    where not coalesce(of_market.spans @> a.ts, false) and not exists (
        select
        from known of_all
        where of_all.market_key is null and of_all.spans @> a.ts
            and (of_all.shard is null or in_shard((select m.market_id from markets m where m.market_key = a.market_key), of_all.shard, of_all.shards))
    )
    group by 1, 2
),
noted as materialized (
    select
        m.*,
        (
            select g.gap_id
            from coverage_gaps g
            where g.kind = 'trades' and g.cause = :cause and g.market_key = m.market_key
                and g.from_ts >= m.day and g.from_ts < m.day + interval '24 hours'
            limit 1
        ) as gap_id
    from missed m
),
extended as (
    update coverage_gaps g
    set from_ts = least(g.from_ts, n.from_ts), to_ts = greatest(g.to_ts, n.to_ts), filled_at = now(),
        detail = g.detail || jsonb_build_object('trades', (g.detail ->> 'trades')::bigint + n.trades)
    from noted n
    where g.gap_id = n.gap_id
)
insert into coverage_gaps (kind, exchange, market_key, from_ts, to_ts, cause, filled_at, filled_by, detail)
select 'trades', :exchange, market_key, from_ts, to_ts, :cause, now(), :filled_by, jsonb_build_object('trades', trades)
from noted
where gap_id is null;

-- name: close_counted(exchange, filled_by)!
-- Gaps in an exchange's trades all of whose days have been reconciled since they ended: missing trades are stored, unless trades of unknown
-- tokens were listed.
update coverage_gaps g
set filled_at = now(), filled_by = :filled_by
where g.kind = 'trades' and g.exchange = :exchange and g.filled_at is null and g.to_ts is not null and not exists (
    select
    from generate_series((g.from_ts at time zone 'UTC')::date, (g.to_ts at time zone 'UTC')::date, interval '1 day') as touched (day)
    left join coverage_days d
        on d.day = touched.day::date and d.kind = own('trades', g.exchange) and d.checked_at > g.to_ts and d.unknown = 0
    where d.day is null
);

-- name: save_day(day, kind, listed, held, added, unlisted, unknown, agrees, detail)!
-- Stores a reconciled day; earlier additions continue to count.
insert into coverage_days as d (day, kind, listed, held, added, unlisted, unknown, agrees, detail)
values (:day, :kind, :listed, :held, :added, :unlisted, :unknown, :agrees, :detail::jsonb)
on conflict (day, kind) do update set
    listed = excluded.listed, held = excluded.held, added = d.added + excluded.added, unlisted = excluded.unlisted,
    unknown = excluded.unknown, agrees = excluded.agrees, checked_at = now(), detail = excluded.detail;

-- name: save_market_days(day, market_keys, listed, held, added, unlisted)!
-- The same by market.
insert into coverage_market_days as d (day, market_key, listed, held, added, unlisted)
select :day::date, market_key, listed, held, added, unlisted
from unnest(:market_keys::int[], :listed::int[], :held::int[], :added::int[], :unlisted::int[])
    as given (market_key, listed, held, added, unlisted)
order by market_key
on conflict (day, market_key) do update set
    listed = excluded.listed, held = excluded.held, added = d.added + excluded.added, unlisted = excluded.unlisted;

-- name: days_done(since)
-- Which days were reconciled: day, kind.
select day, kind from coverage_days where day >= :since::date;

-- name: blocks_of(since, until)^
-- The lowest and the highest block indexed in a time range, and how many logs they have.
select min(number), max(number), coalesce(sum(logs), 0)::bigint from chain_blocks where ts >= :since and ts < :until;

-- name: is_unindexed(since, until)$
-- Whether blocks of a time range are still to be indexed by the feed: it has not come to the range's end, or has a hole there.
-- Blocks from before its first are not its to index.
select exists (
    select
    from chain_heads h
    left join chain_blocks b on b.number = h.indexed
    where h.feed = 'settlement' and (
        coalesce(b.ts < :until, true)
        or exists (
            select from chain_holes
            where to_block >= (h.detail ->> 'start')::bigint and from_ts < :until and to_ts > :since
        )
    )
);

-- name: newest_day(kind)$
-- The newest day of a kind that was reconciled; null if none was.
select max(day) from coverage_days where kind = :kind;

-- name: disagreements()^
-- How many days of the last 30, of every kind and exchange, do not agree, and the newest of those.
select count(*), max(day) from coverage_days where not agrees and day >= (now() at time zone 'UTC')::date - 30;
