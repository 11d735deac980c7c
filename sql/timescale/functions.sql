-- Small enough for the planner to inline: then they cost what the expression costs, and indexes behind a view are still used.
-- Inlining asks that a function be no steadier than its body, hence the last two are stable: extract() from a timestamptz is.

-- Micro-units to the number that JSON shows.
create function as_number(micro bigint) returns double precision
language sql immutable strict parallel safe
return micro / 1000000.0::double precision;

-- Milliseconds since 1970. By numeric, as a double has lost the last microsecond by 2039.
create function as_ms(ts timestamptz) returns bigint
language sql stable strict parallel safe
return floor(extract(epoch from ts) * 1000)::bigint;

-- Microseconds since 1970.
create function as_us(ts timestamptz) returns bigint
language sql stable strict parallel safe
return (extract(epoch from ts) * 1000000)::bigint;

create function from_us(us bigint) returns timestamptz
language sql immutable strict parallel safe
return timestamptz '1970-01-01 00:00:00+00' + us * interval '1 microsecond';

-- Seconds since 1970.
create function as_unix(ts timestamptz) returns bigint
language sql stable strict parallel safe
return floor(extract(epoch from ts))::bigint;

-- Which of so many shards of the live feed a market belongs to: by the last digits of its condition id.
create function shard_of(market_id text, shards integer) returns integer
language sql immutable strict parallel safe
return case when market_id ~ '[0-9a-f]{7}$' then ('x' || right(market_id, 7))::bit(28)::integer % shards + 1 else 1 end;

-- Whether what is said of a shard concerns a market; what is said of none concerns every market.
create function in_shard(market_id text, shard integer, shards integer) returns boolean
language sql immutable parallel safe
return shard is null or shard_of(market_id, shards) = shard;

-- The name of a shard's feed: the family's own while it is the only one.
create function feed_of(family text, shard integer, shards integer) returns text
language sql immutable strict parallel safe
return case when shards = 1 then family else family || '/' || shard::text || 'of' || shards::text end;

-- A record with more fields after its own.
create function extended(record json, more json) returns text
language sql immutable strict parallel safe
return left(record::text, -1) || ',' || substr(more::text, 2);

-- Question, slug and event title in lower case, a line each, as searches look through them. Not the same title twice.
create function market_titles(question text, slug text, event_title text) returns text
language sql immutable parallel safe
return lower(question || coalesce(E'\n' || slug, '') || case when event_title <> question then E'\n' || event_title else '' end);

-- How the day's figures are judged. Each formula stands here and nowhere else: rankings, sentiment and signals all ask these.

-- What a market's price is: the middle of its best prices or, while they are more than ten cents apart, the last trade.
create function market_price(bid bigint, ask bigint, mid bigint, last bigint) returns bigint
language sql immutable parallel safe
return case when mid is null or ask - bid > 100000 then last else mid end;

-- How far an hour's USD stands out: over the hourly mean of the 24 hours that it ends.
create function spike_ratio(value_1h bigint, value_24h bigint) returns double precision
language sql immutable parallel safe
return value_1h * 24.0::double precision / nullif(value_24h, 0);

-- Where the volume goes: the last hour more than a quarter off the hourly mean.
create function volume_trend(spike_ratio double precision) returns text
language sql immutable parallel safe
return case when spike_ratio > 1.25 then 'up' when spike_ratio < 0.75 then 'down' else 'flat' end;

-- Where a market leans: its odds have changed by more than an eighth (three cents at even odds), and its price by two cents at least.
create function sentiment(before bigint, after bigint) returns text
language sql immutable parallel safe
return case
    when abs(after - before) < 20000 then 'neutral'
    when after * (1000000.0::float8 - before) > 1.125 * before * (1000000.0::float8 - after) then 'bullish'
    when before * (1000000.0::float8 - after) > 1.125 * after * (1000000.0::float8 - before) then 'bearish'
    else 'neutral'
end;

-- A signal as the API shows it, and the stream tells it.
create function signal_record(
    signal_id bigint, type text, market_id text, outcome smallint, value double precision, threshold double precision,
    score double precision, direction smallint, window_s integer, detail jsonb, ts timestamptz
) returns json
language sql stable parallel safe
return (
    select row_to_json(r)
    from (
        select
            signal_id::text as id, type, market_id, outcome, value, threshold, score,
            case direction when 1 then 'up' when -1 then 'down' end as direction, window_s, detail, as_ms(ts) as ts
    ) as r
);
