-- Queries of `presage demo` on the running pipeline.

-- name: stages()
-- Each stage, how fresh it is, and what hinders it and since when (Unix seconds), in the order of the data flow.
select stage, status, lag_s, detail ->> 'reason', (detail ->> 'since')::bigint
from pipeline_status
where not off
order by array_position(
    array['discovery', 'discovery_kalshi', 'ingestion', 'ingestion_kalshi', 'settlement', 'analysis', 'aggregates', 'delivery'], stage), stage;

-- name: leases()
-- Runs that hold the feed's sockets, and how long ago each sent a heartbeat.
select feed, run_id, role, ready, pid, extract(epoch from now() - beat_at)::float8 as silent_s,
       extract(epoch from window_ends_at - now())::float8 as window_left_s
from feed_leases
where role <> 'gone' and beat_at > now() - interval '60 s'
order by feed, role, run_id;

-- name: lag_counts(since)
-- Histograms of the lag from the exchange's timestamp to the commit, as recorded by the feeds, and of which exchange each is.
select lag_counts, split_part(feed, '/', 1) from feed_stats where ts >= :since;

-- name: gaps()
-- Causes of the gaps that are known, the most frequent first: how many of each, and how many of these are still open.
select cause, count(*), count(*) filter (where to_ts is null) from coverage_gaps group by cause order by 2 desc, cause;

-- name: quarantined()$
-- Payloads refused.
select count(*) from quarantine;

-- name: keys()
-- Every key, by its public parts.
select k.prefix, coalesce(a.former_email || ' (former)', a.email), a.app_name, k.tier, k.created_at, coalesce(u.used, 0),
       coalesce(k.credits_month, t.credits_month), k.revoked_at
from api_keys k
join accounts a using (account_id)
join tiers t using (tier)
left join credit_usage u on u.key_id = k.key_id and u.month = date_trunc('month', now(), 'UTC')
order by k.created_at, k.key_id;

-- name: backfill()$
-- The stored state of the backfill; null where none is configured.
select value from settings where name = 'backfill';

-- name: past()^
-- Data beyond the live data: signals, wallets of the fortnight's leaderboard that have earned, markets with candles on 14 days and more,
-- and the ratios of the 25 markets that stand out most.
select
    (select count(*) from signals),
    (select count(*) from leaderboards where by = 'pnl' and span = '30d' and pnl_usd > 0),
    (
        select count(*)
        from (
            select from candles_1h group by market_key having count(distinct date_trunc('day', bucket, 'UTC')) >= 14
        ) as charted
    ),
    (
        select count(distinct round(spike_ratio::numeric, 2))
        from (select spike_ratio from market_activity where spike_ratio is not null order by spike_ratio desc limit 25) as first
    ),
    (select count(*) from coverage_days where kind = 'trades');
