-- A release before that was gone back to has computed figures of the other exchange's trades. They come back with the next pass.
delete from market_stats_24h s
where not exists (select from markets m where m.market_key = s.market_key and m.exchange = 'polymarket');

delete from market_activity a
where not exists (select from markets m where m.market_key = a.market_key and m.exchange = 'polymarket');

-- Coverage gaps by exchange, and the clock of a second exchange's feed.
alter table coverage_gaps add column exchange text not null default 'polymarket';

comment on column coverage_gaps.exchange is 'The exchange of its market, or of all markets that it concerns';

comment on column coverage_days.kind is 'trades or settlements; of another exchange than Polymarket with its name, as trades_kalshi';

drop index coverage_gaps_missing_idx;

drop index coverage_gaps_filled_idx;

create index coverage_gaps_missing_idx on coverage_gaps (exchange, kind, from_ts, to_ts) where filled_at is null;

create index coverage_gaps_filled_idx on coverage_gaps (exchange, kind) where filled_at is not null;

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
    null::bigint as from_block, null::bigint as to_block, shard, shards, exchange
from coverage_gaps
union all
select *, null, null, 'polymarket' from chain_holes;

create or replace view analytics.coverage_gaps as
select
    g.kind, m.market_id, m.slug, g.from_ts, g.to_ts, g.cause, g.filled_at, g.filled_by, g.exchange
from coverage_gaps g
left join markets m using (market_key);

comment on column analytics.coverage_gaps.market_id is 'Market; null: all of the exchange';

comment on column analytics.coverage_gaps.exchange is 'The exchange of the market, or of all that are concerned: polymarket or kalshi';

insert into stage_clocks (stage, warn_after_s, fail_after_s, detail) values
    ('ingestion_kalshi', 15, 60, '{"off": "Kalshi is not recorded"}');

create function own(name text, exchange text) returns text
language sql immutable parallel safe
return case exchange when 'polymarket' then name else name || '_' || exchange end;

create function exchange_feeds() returns table (exchange text, stage text)
language sql immutable parallel safe
as $$
    select exchange, own('ingestion', exchange) from unnest(array['polymarket', 'kalshi']) as exchange
$$;

-- What is live, by exchange.
create view alive_exchanges as
select exchange
from exchange_feeds()
join stage_clocks using (stage)
where beat_at > now() - interval '10 seconds'
    and (
        detail ->> 'backlog_events' = '0'
        or last_data_at > now() - make_interval(
            secs => coalesce(
                (
                    select jsonb_path_query_first(value, 'strict $ ? (@ >= 1 && @ <= 604800)')::int
                    from settings
                    where name = 'parameters.' || stage || '_fail_after_s'
                ),
                fail_after_s
            )
        )
    );

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
where m.status = 'ACTIVE' and b.verified and m.exchange = any (array(select exchange from alive_exchanges));

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
where m.status = 'ACTIVE' and b.verified and m.exchange = any (array(select exchange from alive_exchanges));

-- What is recorded, by exchange.
create function recorded_since(exchange text) returns timestamptz
language sql stable parallel safe
as $$
    select coalesce(
        (
            select to_timestamp((value #>> '{}')::bigint / 1000.0)
            from settings
            where name = own('recorded_since', exchange)
        ),
        (
            with recursive feeds (feed) as (  -- by steps through the index: few feeds have millions of rows
                (select feed from feed_stats order by feed limit 1)
                union all
                select (select f.feed from feed_stats f where f.feed > feeds.feed order by f.feed limit 1)
                from feeds
                where feed is not null
            )
            select min(since)
            from (
                select shards, max(first) as since
                from (
                    select
                        coalesce(substring(feed from '/\d+of(\d+)$')::int, 1) as shards,
                        (select s.ts from feed_stats s where s.feed = feeds.feed and s.messages > 0 order by s.ts limit 1) as first
                    from feeds
                    where feed = exchange or starts_with(feed, exchange || '/')
                ) as firsts
                group by shards
                having count(first) = shards
            ) as begun
        )
    );
$$;

create or replace function recorded_since() returns timestamptz
language sql stable parallel safe
return recorded_since('polymarket');

create or replace view coverage_held as
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

create or replace view market_records as
select
    market_key, market_id, gamma_id, slug, question, status, exchange, event_id, event_title, category, series, tags, end_time, created_at,
    (
        select row_to_json(r)
        from (
            select
                market_id,
                slug,
                question,
                status,
                exchange,
                event_id,
                category,
                series,
                tags,
                outcomes,
                token_ids,
                array(select as_number(price) from unnest(outcome_prices) as o (price)) as outcome_prices,
                as_unix(start_time) as start_time,
                as_unix(end_time) as end_time,
                as_unix(created_at) as created_at,
                as_unix(resolved_at) as resolved_at,
                winning_outcome,
                as_number(volume_usd) as volume_usd,
                coalesce(
                    (select as_number(a.value_24h) from market_activity a where a.market_key = markets.market_key),
                    case when exchange = any (array(  -- nothing is known of one that is not recorded
                        select feeds.exchange from exchange_feeds() feeds join stage_clocks using (stage) where not detail ? 'off'
                    )) then 0 end
                ) as volume_24h_usd,
                as_number(volume_24h_usd) as exchange_volume_24h_usd,
                as_number(liquidity_usd) as liquidity_usd,
                neg_risk,
                image,
                url,
                as_unix(updated_at) as updated_at,
                source
        ) as r
    ) as record
from markets;

-- Figures and rankings, by exchange.
alter table market_stats_24h add column exchange text not null default 'polymarket';

alter table market_activity add column exchange text not null default 'polymarket';

drop index market_activity_value_1h_idx;

drop index market_activity_trades_1h_idx;

drop index market_activity_value_24h_idx;

drop index market_activity_trades_24h_idx;

drop index market_activity_value_7d_idx;

drop index market_activity_trades_7d_idx;

drop index market_activity_spike_ratio_idx;

drop index market_activity_price_move_idx;

create index market_activity_value_1h_idx on market_activity (exchange, value_1h desc, market_key desc);

create index market_activity_trades_1h_idx on market_activity (exchange, trades_1h desc, market_key desc);

create index market_activity_value_24h_idx on market_activity (exchange, value_24h desc, market_key desc);

create index market_activity_trades_24h_idx on market_activity (exchange, trades_24h desc, market_key desc);

create index market_activity_value_7d_idx on market_activity (exchange, value_7d desc, market_key desc);

create index market_activity_trades_7d_idx on market_activity (exchange, trades_7d desc, market_key desc);

create index market_activity_spike_ratio_idx on market_activity (exchange, spike_ratio desc nulls last, value_1h desc);

create index market_activity_price_move_idx on market_activity (exchange, abs(price_move) desc nulls last);

create or replace view ranked_markets as
select
    a.market_key, a.value_1h, a.trades_1h, a.value_24h, a.trades_24h, a.value_7d, a.trades_7d, a.spike_ratio, a.price_move,
    m.market_id, m.slug, m.question, m.event_title, m.status, a.exchange, m.record,
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

-- Signals, by exchange.
create or replace view signal_records as
select
    s.market_key, s.outcome, s.ts, s.type, s.score, s.signal_id,
    signal_record(
        s.signal_id, s.type, m.market_id, s.outcome, s.value, s.threshold, s.score, s.direction, s.window_s, s.detail, s.ts
    ) as record,
    m.exchange
from signals s
join markets m using (market_key);

-- Analysts' views, by exchange.

create or replace view analytics.trades as
select
    t.ts, m.market_id, m.slug, t.outcome, m.outcomes[t.outcome + 1] as outcome_name,
    case when t.side > 0 then 'BUY' else 'SELL' end as side,
    t.price * 0.000001 as price, t.size * 0.000001 as size, t.value_usd * 0.000001 as value_usd,
    '0x' || encode(t.tx_hash, 'hex') as tx_hash, t.trade_id, t.seq, m.exchange
from trades t
join markets m using (market_key);

comment on column analytics.trades.exchange is 'The exchange of the market: polymarket or kalshi';

create or replace view analytics.candles_1m as
select
    c.bucket, m.market_id, m.slug, c.outcome, m.outcomes[c.outcome + 1] as outcome_name,
    c.open * 0.000001 as open, c.high * 0.000001 as high, c.low * 0.000001 as low, c.close * 0.000001 as close,
    c.volume * 0.000001 as volume, c.value_usd * 0.000001 as value_usd, c.trades, m.exchange
from candles_1m c
join markets m using (market_key);

comment on column analytics.candles_1m.exchange is 'The exchange of the market: polymarket or kalshi';

create or replace view analytics.candles_1h as
select
    c.bucket, m.market_id, m.slug, c.outcome, m.outcomes[c.outcome + 1] as outcome_name,
    c.open * 0.000001 as open, c.high * 0.000001 as high, c.low * 0.000001 as low, c.close * 0.000001 as close,
    c.volume * 0.000001 as volume, c.value_usd * 0.000001 as value_usd, c.trades, m.exchange
from candles_1h c
join markets m using (market_key);

comment on column analytics.candles_1h.exchange is 'The exchange of the market: polymarket or kalshi';

create or replace view analytics.quotes as
select
    q.ts, m.market_id, m.slug, q.outcome, m.outcomes[q.outcome + 1] as outcome_name,
    q.bid * 0.000001 as bid, q.ask * 0.000001 as ask, q.mid * 0.000001 as mid, (q.ask - q.bid) * 0.000001 as spread,
    q.bid_size * 0.000001 as bid_size, q.ask_size * 0.000001 as ask_size, m.exchange
from quotes q
join markets m using (market_key);

comment on column analytics.quotes.exchange is 'The exchange of the market: polymarket or kalshi';

create or replace view analytics.books as
select
    m.market_id, m.slug, b.outcome, m.outcomes[b.outcome + 1] as outcome_name, l.side, l.level,
    l.price * 0.000001 as price, l.size * 0.000001 as size, b.ts, m.exchange
from book_current b
join markets m using (market_key)
cross join lateral (
    select 'bid' as side, level, price, size from unnest(b.bid_prices, b.bid_sizes) with ordinality as bids (price, size, level)
    union all
    select 'ask', level, price, size from unnest(b.ask_prices, b.ask_sizes) with ordinality as asks (price, size, level)
) as l
where b.verified;

comment on column analytics.books.exchange is 'The exchange of the market: polymarket or kalshi';

create or replace view analytics.signals as
select
    s.ts, m.market_id, m.slug, s.type, s.outcome, s.value, s.threshold, s.score,
    case s.direction when 1 then 'up' when -1 then 'down' end as direction, s.window_s, s.detail, s.found_at, s.signal_id, m.exchange
from signals s
join markets m using (market_key);

comment on column analytics.signals.exchange is 'The exchange of the market: polymarket or kalshi';
