-- Data for the benchmark of lists: an exchange's whole catalogue, generated in the database, the newest key last. Of each eight keys an
-- event: games of a league's season, crypto markets of minutes, elections, and the rest. Names are frequent by Zipf; a season's and a
-- day's are dense among their own markets and absent from all others. Live are four of five of the newest, and a few old ones.

-- name: prepare#
-- What makes the load fast; the same indexes are built afterwards.
set work_mem = '256MB';
set maintenance_work_mem = '1GB';
set synchronous_commit = off;
select setseed(0.42);
create temp table indexes as
    select indexname, indexdef from pg_indexes
    where tablename = 'markets' and indexname not in (select conname from pg_constraint);
do $$
begin
    execute (select string_agg(format('drop index %I', indexname), '; ') from indexes);
end
$$;
create function pg_temp.zipf(text text, n integer) returns integer language sql immutable
return floor(power(n::float8, (('x' || left(md5(text), 8))::bit(32)::bigint & 16777215) / 16777216.0))::integer;

-- name: markets(markets, live, now)!
-- Markets with their events' names.
insert into markets (
    market_key, market_id, gamma_id, slug, question, description, status, event_id, event_title, category, series, tags, outcomes, token_ids,
    start_time, end_time, created_at, closed_at, resolved_at, winning_outcome, volume_usd, volume_24h_usd, liquidity_usd, tick_size, image,
    url, source
) overriding system value
select
    key, '0x' || encode(sha256(('market ' || key)::bytea), 'hex'), (500000 + key)::text, slug || '-' || key,
    title, 'This market resolves to Yes if what it asks has come true by its end.',
    status, event::text, title, category, series, tags, array['Yes', 'No'],
    array[('x' || left(md5('token ' || key || ' 0'), 15))::bit(60)::bigint::text, ('x' || left(md5('token ' || key || ' 1'), 15))::bit(60)::bigint::text],
    created, case when status = 'ACTIVE' then :now::timestamptz + interval '120 days' * power(random(), 6) - interval '10 minutes'
                  else least(created + interval '7 days' * random(), :now::timestamptz) end,
    created, case when status <> 'ACTIVE' then least(created + interval '8 days' * random(), :now::timestamptz) end,
    case when status = 'RESOLVED' then least(created + interval '9 days' * random(), :now::timestamptz) end,
    case when status = 'RESOLVED' then key %% 2 end,
    floor(random() * 1e12), floor(random() * 1e10), floor(random() * 1e10), 10000,
    'https://images.example.com/' || event || '.png', 'https://example.com/market/' || key, 'simulated'
from (
    select
        *,
        :now::timestamptz - interval '900 days' * (1 - key::float8 / :markets::integer) as created,
        case
            when key > :markets::integer - :live::integer * 9 / 8 then case when key %% 7 > 0 then 'ACTIVE' when event %% 2 = 0 then 'CLOSED' else 'RESOLVED' end
            when key %% (:markets::integer / (:live::integer / 27)) = 0 then 'ACTIVE'
            when key %% 97 = 0 then 'CLOSED'
            else 'RESOLVED'
        end as status
    from (
        select
            key, event,
            case kind when 0 then 'sports' when 1 then 'crypto' when 2 then 'politics' else 'category-' || pg_temp.zipf('c' || event, 14) end as category,
            case kind
                when 0 then league || '-' || year
                when 1 then coin || '-up-or-down-' || length
                when 2 then case when event %% 10 = 0 then 'election-' || year || '-' || pg_temp.zipf('s' || event, 300) end
                else case when event %% 4 = 0 then 'series-' || pg_temp.zipf('s' || event, 3000) end
            end as series,
            case kind
                when 0 then array['sports', 'games', league, 'team-' || pg_temp.zipf('a' || event, 2000), 'team-' || pg_temp.zipf('b' || event, 2000)]
                when 1 then array['crypto', 'up-or-down', 'recurring', coin, length]
                when 2 then array['politics', 'elections', 'topic-' || pg_temp.zipf('t' || event, 5000), 'topic-' || pg_temp.zipf('u' || event, 5000)]
                else array['topic-' || pg_temp.zipf('t' || event, 5000), 'topic-' || pg_temp.zipf('u' || event, 5000), 'person-' || event %% 20000]
            end as tags,
            case kind
                when 0 then league || '-' || pg_temp.zipf('a' || event, 2000) || '-' || pg_temp.zipf('b' || event, 2000)
                when 1 then coin || '-updown-' || length
                when 2 then 'election-' || event
                else 'will-it-' || event
            end as slug,
            case kind
                when 0 then initcap(league) || ': Team ' || pg_temp.zipf('a' || event, 2000) || ' vs. Team ' || pg_temp.zipf('b' || event, 2000) || ', over ' || key %% 40 + 180.5
                when 1 then initcap(coin) || ' Up or Down - day ' || event / 800 || ', ' || key %% 12 + 1 || ':' || key %% 60 || ' ' || length
                when 2 then 'Will candidate ' || key %% 40 || ' win election ' || event || ' in ' || year || '?'
                else 'Will it happen ' || key %% 8 || ' times by the end of day ' || event / 800 || '?'
            end as title
        from (
            select
                key, key / 8 as event, 2024 + key::bigint * 3 / (:markets::integer + 1) as year,
                (array[0, 0, 0, 0, 1, 1, 1, 1, 2, 3, 3])[1 + pg_temp.zipf('k' || key / 8, 2048) * 7919 %% 11] as kind,
                (array['nba', 'nfl', 'mlb', 'nhl', 'epl', 'atp', 'lal', 'cbb', 'ufc', 'mls', 'wta', 'ipl', 'f1', 'lol', 'cs2', 'dota'])[
                    least(16, pg_temp.zipf('l' || key / 8, 17))] as league,
                (array['bitcoin', 'ethereum', 'solana', 'xrp', 'dogecoin', 'bnb', 'hyperliquid'])[1 + key / 8 %% 7] as coin,
                (array['5m', '15m', '1h', '4h', '1d'])[least(5, pg_temp.zipf('d' || key / 8, 6))] as length
            from generate_series(1, :markets::integer) as key
        ) as drawn
    ) as named
) as placed
order by key;

-- name: index#
-- The indexes again, and the next key.
do $$
declare
    each record;
begin
    for each in select indexdef from indexes loop
        execute each.indexdef;
    end loop;
end
$$;
drop table indexes;
select setval(pg_get_serial_sequence('markets', 'market_key'), (select max(market_key) from markets));
insert into events (event_id, slug, title, category, series, tags)
    select distinct on (event_id) event_id, slug, event_title, category, series, tags from markets order by event_id;

-- name: prices(now)!
-- A price of each live market's outcomes.
insert into live_prices (market_key, outcome, bid, ask, mid, last, last_ts, ts)
select market_key, outcome, 495000, 505000, 500000, 500000, :now, :now::timestamptz - interval '20 hours' * power(random(), 3)
from markets cross join generate_series(0, 1) as outcome
where status = 'ACTIVE';

-- name: activity(now)!
-- Trades of a quarter of them, the r-th busiest about 1/r as many as the first.
insert into market_activity (
    market_key, value_1h, trades_1h, value_24h, trades_24h, value_7d, trades_7d, spike_ratio, price_now, price_baseline, price_move, computed_at
)
select
    market_key, case when rank < 10000 then 1e12 / 24 / rank else 0 end, case when rank < 10000 then 100000 / 24 / rank + 1 else 0 end,
    1e12 / rank, 100000 / rank + 1, 5e12 / rank, 500000 / rank + 1, case when rank < 10000 then random() * 5 end,
    500000, 500000, floor((random() - 0.5) * 200000), :now
from (select market_key, row_number() over (order by md5(market_key::text)) as rank from markets where status = 'ACTIVE') as live
where rank %% 4 = 1;

-- name: day(now)!
-- The same as the day's figures, of which rankings are made.
insert into market_stats_24h (
    market_key, outcome, open, high, low, close, volume, value_usd, trades, window_start, window_end, computed_at
)
select market_key, 0, 5e5, 5e5, 5e5, 5e5, value_24h * 2, value_24h, trades_24h, :now::timestamptz - interval '24 hours', :now, :now
from market_activity;
