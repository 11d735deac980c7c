drop view analytics.trades;

create view analytics.trades as
select
    t.ts, m.market_id, m.slug, t.outcome, m.outcomes[t.outcome + 1] as outcome_name,
    case when t.side > 0 then 'BUY' else 'SELL' end as side,
    t.price * 0.000001 as price, t.size * 0.000001 as size, t.value_usd * 0.000001 as value_usd,
    '0x' || encode(t.tx_hash, 'hex') as tx_hash, t.trade_id, t.seq
from trades t
join markets m using (market_key);
comment on view analytics.trades is 'The exchange''s tape, one row a trade; always say from when on (ts)';
comment on column analytics.trades.ts is 'When, UTC';
comment on column analytics.trades.market_id is 'Market';
comment on column analytics.trades.slug is 'Market, readable';
comment on column analytics.trades.outcome is 'Number of the outcome, from 0';
comment on column analytics.trades.outcome_name is 'Name of the outcome';
comment on column analytics.trades.side is 'What the taker did: BUY or SELL';
comment on column analytics.trades.price is 'USD a share, 0 to 1';
comment on column analytics.trades.size is 'Shares';
comment on column analytics.trades.value_usd is 'price × size';
comment on column analytics.trades.tx_hash is 'Transaction that settles it; null while unknown';
comment on column analytics.trades.trade_id is 'What the trade is called; the same from every source';
comment on column analytics.trades.seq is 'Order within an instant';

drop view analytics.candles_1m;

create view analytics.candles_1m as
select
    c.bucket, m.market_id, m.slug, c.outcome, m.outcomes[c.outcome + 1] as outcome_name,
    c.open * 0.000001 as open, c.high * 0.000001 as high, c.low * 0.000001 as low, c.close * 0.000001 as close,
    c.volume * 0.000001 as volume, c.value_usd * 0.000001 as value_usd, c.trades
from candles_1m c
join markets m using (market_key);
comment on view analytics.candles_1m is 'Prices by the minute, one row an outcome and minute with trades; always say from when on (bucket)';
comment on column analytics.candles_1m.bucket is 'Start of the minute, UTC';
comment on column analytics.candles_1m.market_id is 'Market';
comment on column analytics.candles_1m.slug is 'Market, readable';
comment on column analytics.candles_1m.outcome is 'Number of the outcome, from 0';
comment on column analytics.candles_1m.outcome_name is 'Name of the outcome';
comment on column analytics.candles_1m.open is 'Price of the first trade';
comment on column analytics.candles_1m.high is 'Highest price';
comment on column analytics.candles_1m.low is 'Lowest price';
comment on column analytics.candles_1m.close is 'Price of the last trade';
comment on column analytics.candles_1m.volume is 'Shares traded';
comment on column analytics.candles_1m.value_usd is 'USD traded';
comment on column analytics.candles_1m.trades is 'How many trades';

drop view analytics.candles_1h;

create view analytics.candles_1h as
select
    c.bucket, m.market_id, m.slug, c.outcome, m.outcomes[c.outcome + 1] as outcome_name,
    c.open * 0.000001 as open, c.high * 0.000001 as high, c.low * 0.000001 as low, c.close * 0.000001 as close,
    c.volume * 0.000001 as volume, c.value_usd * 0.000001 as value_usd, c.trades
from candles_1h c
join markets m using (market_key);
comment on view analytics.candles_1h is 'Prices by the hour, one row an outcome and hour with trades; always say from when on (bucket)';
comment on column analytics.candles_1h.bucket is 'Start of the hour, UTC';
comment on column analytics.candles_1h.market_id is 'Market';
comment on column analytics.candles_1h.slug is 'Market, readable';
comment on column analytics.candles_1h.outcome is 'Number of the outcome, from 0';
comment on column analytics.candles_1h.outcome_name is 'Name of the outcome';
comment on column analytics.candles_1h.open is 'Price of the first trade';
comment on column analytics.candles_1h.high is 'Highest price';
comment on column analytics.candles_1h.low is 'Lowest price';
comment on column analytics.candles_1h.close is 'Price of the last trade';
comment on column analytics.candles_1h.volume is 'Shares traded';
comment on column analytics.candles_1h.value_usd is 'USD traded';
comment on column analytics.candles_1h.trades is 'How many trades';

drop view analytics.quotes;

create view analytics.quotes as
select
    q.ts, m.market_id, m.slug, q.outcome, m.outcomes[q.outcome + 1] as outcome_name,
    q.bid * 0.000001 as bid, q.ask * 0.000001 as ask, q.mid * 0.000001 as mid, (q.ask - q.bid) * 0.000001 as spread,
    q.bid_size * 0.000001 as bid_size, q.ask_size * 0.000001 as ask_size
from quotes q
join markets m using (market_key);
comment on view analytics.quotes is 'Best prices, one row a change; each stands until the next; always say from when on (ts)';
comment on column analytics.quotes.ts is 'Since when, UTC';
comment on column analytics.quotes.market_id is 'Market';
comment on column analytics.quotes.slug is 'Market, readable';
comment on column analytics.quotes.outcome is 'Number of the outcome, from 0';
comment on column analytics.quotes.outcome_name is 'Name of the outcome';
comment on column analytics.quotes.bid is 'Best price that somebody would pay; null: nobody';
comment on column analytics.quotes.ask is 'Best price that somebody would sell for; null: nobody';
comment on column analytics.quotes.mid is 'Middle of the two';
comment on column analytics.quotes.spread is 'ask less bid';
comment on column analytics.quotes.bid_size is 'Shares wanted at the bid when it became the best; null when unknown';
comment on column analytics.quotes.ask_size is 'Shares offered at the ask when it became the best; null when unknown';

drop view analytics.books;

create view analytics.books as
select
    m.market_id, m.slug, b.outcome, m.outcomes[b.outcome + 1] as outcome_name, l.side, l.level,
    l.price * 0.000001 as price, l.size * 0.000001 as size, b.ts
from book_current b
join markets m using (market_key)
cross join lateral (
    select 'bid' as side, level, price, size from unnest(b.bid_prices, b.bid_sizes) with ordinality as bids (price, size, level)
    union all
    select 'ask', level, price, size from unnest(b.ask_prices, b.ask_sizes) with ordinality as asks (price, size, level)
) as l
where b.verified;
comment on view analytics.books is 'Order books as they stand now, one row a level; those in doubt are left out';
comment on column analytics.books.market_id is 'Market';
comment on column analytics.books.slug is 'Market, readable';
comment on column analytics.books.outcome is 'Number of the outcome, from 0';
comment on column analytics.books.outcome_name is 'Name of the outcome';
comment on column analytics.books.side is 'bid or ask';
comment on column analytics.books.level is '1 is the best price of its side';
comment on column analytics.books.price is 'USD a share, 0 to 1';
comment on column analytics.books.size is 'Shares at this price';
comment on column analytics.books.ts is 'When the exchange last changed the book, UTC';

drop view analytics.signals;

create view analytics.signals as
select
    s.ts, m.market_id, m.slug, s.type, s.outcome, s.value, s.threshold, s.score,
    case s.direction when 1 then 'up' when -1 then 'down' end as direction, s.window_s, s.detail, s.found_at, s.signal_id
from signals s
join markets m using (market_key);
comment on view analytics.signals is 'What stood out, one row a signal; docs/signals.md defines each type';
comment on column analytics.signals.ts is 'End of the window that it was found in, UTC';
comment on column analytics.signals.market_id is 'Market';
comment on column analytics.signals.slug is 'Market, readable';
comment on column analytics.signals.type is 'momentum, volume_spike, whale_alert, spread_widening, book_imbalance or price_reversal';
comment on column analytics.signals.outcome is 'Number of the outcome that it is about, from 0';
comment on column analytics.signals.value is 'What was found, in the unit of its type';
comment on column analytics.signals.threshold is 'From where on it counts';
comment on column analytics.signals.score is 'value / threshold';
comment on column analytics.signals.direction is 'up, down or null';
comment on column analytics.signals.window_s is 'Seconds up to ts';
comment on column analytics.signals.detail is 'Figures behind it';
comment on column analytics.signals.found_at is 'When it was stored';
comment on column analytics.signals.signal_id is 'What it is called; the same however often it is found';

drop view signal_records;

create view signal_records as
select
    s.market_key, s.outcome, s.ts, s.type, s.score, s.signal_id,
    signal_record(
        s.signal_id, s.type, m.market_id, s.outcome, s.value, s.threshold, s.score, s.direction, s.window_s, s.detail, s.ts
    ) as record
from signals s
join markets m using (market_key);

-- The release before takes all data for Polymarket's: what is computed, and what is live, of the other exchange goes. Its trades and books
-- stay, as nothing could bring them back, and figures are computed of them again. Who goes back past 0025, too, takes its markets out of all
-- that is served, and these rows with them.
delete from feed_stats where split_part(feed, '/', 1) = 'kalshi';

create temp table other_markets on commit drop as select market_key from markets where exchange <> 'polymarket';

delete from live_prices where market_key in (select market_key from other_markets);

delete from live_books where market_key in (select market_key from other_markets);

delete from market_stats_24h where market_key in (select market_key from other_markets);

delete from signals where market_key in (select market_key from other_markets);

-- The release before knows gaps of one exchange: it would hold the other's against its markets, and ask Polymarket to fill them.
delete from coverage_gaps
where exchange <> 'polymarket' or market_key in (select market_key from markets where exchange <> 'polymarket');

delete from stage_clocks where stage = 'ingestion_kalshi';

-- It would list them as topics that it does not have, and never delete them. Their files stay.
delete from exports where topic like '%\_kalshi';

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
                case when exchange = 'polymarket' then  -- nothing is recorded of others: config/exchanges.py
                    coalesce((select as_number(a.value_24h) from market_activity a where a.market_key = markets.market_key), 0)
                end as volume_24h_usd,
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

drop view alive_exchanges;

drop view coverage_held;

drop function exchange_feeds();

drop function own(text, text);

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

delete from coverage_market_days where market_key in (select market_key from markets where exchange <> 'polymarket');

delete from coverage_days where kind = 'trades_kalshi';

comment on column coverage_days.kind is 'trades or settlements';

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

alter table market_stats_24h drop column exchange;

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
