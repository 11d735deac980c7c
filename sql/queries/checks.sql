-- name: up_s()$
-- Seconds since the database started.
select date_part('epoch', now() - pg_postmaster_start_time());

-- name: stages()
-- How late each stage is now, and which data-quality checks count against it.
select
    stage, status, lag_s, warn_after_s, fail_after_s, last_data_at, beat_at, detail ->> 'off',
    (select string_agg(name, ', ' order by name) from jsonb_object_keys(detail -> 'quality') as name)
from pipeline_status;

-- name: lags(exchange, since)
-- Lag histograms of an exchange's feed, exchange timestamp to commit.
select lag_counts from feed_stats where ts >= :since and split_part(feed, '/', 1) = :exchange;

-- name: crossed(exchange)^
-- Served books of an exchange, those among them whose best bid is not below the best ask, and unverified books, which are not served.
select count(*) filter (where verified), count(*) filter (where verified and bid_prices[1] >= ask_prices[1]),
       count(*) filter (where not verified),
       left(string_agg(market_key::text, ' ') filter (where verified and bid_prices[1] >= ask_prices[1]), 100)
from live_books b
where exists (select from markets m where m.market_key = b.market_key and m.exchange = :exchange);

-- name: complements(exchange, tolerance)^
-- Markets of an exchange, of two outcomes with a two-sided price on both, and those whose mid prices do not add up to 1.
select count(*), count(*) filter (where abs(yes.mid + no.mid - 1000000) > :tolerance),
       coalesce(max(abs(yes.mid + no.mid - 1000000)), 0), coalesce(avg(abs(yes.mid + no.mid - 1000000)), 0)::bigint
from live_prices yes
join live_prices no on no.market_key = yes.market_key and no.outcome = 1
join markets m on m.market_key = yes.market_key
where yes.outcome = 0 and m.exchange = :exchange and m.status = 'ACTIVE' and cardinality(m.outcomes) = 2
  and yes.bid is not null and yes.ask is not null and no.bid is not null and no.ask is not null
  -- Of one moment: a price that moved on while its complement's message was lost says nothing about either.
  and abs(extract(epoch from yes.ts - no.ts)) < 60;

-- name: gaps(exchange)^
-- Gaps of an exchange's coverage: still open, open for longer than a minute, begun within a day, and not filled. The start of a market that was found a
-- moment ago is open for a second or two, whenever the market was listed: that counts after a minute.
select count(*) filter (where to_ts is null and (cause <> 'listed before it was followed' or created_at < now() - interval '1 minute')),
       count(*) filter (
           where to_ts is null
               and case when cause = 'listed before it was followed' then created_at else from_ts end < now() - interval '1 minute'
       ),
       count(*) filter (where from_ts > now() - interval '1 day'),
       count(*) filter (where from_ts > now() - interval '1 day' and filled_at is null)
from coverage_gaps
where exchange = :exchange;

-- name: quality_silence()$
-- Seconds since the last data-quality pass ended (before the first, since the feed has recorded), while ingestion runs.
select date_part('epoch', now() - coalesce(
    (select max(ran_at) from quality_suites), (select ts from feed_stats order by ts limit 1)
))
from pipeline_status
where stage = 'ingestion' and lag_s <= fail_after_s;

-- name: refused(since)
-- Recently refused payloads, by source and reason.
select source, left(reason, 120), count(*) from quarantine where ts >= :since group by 1, 2 order by 3 desc limit 20;
