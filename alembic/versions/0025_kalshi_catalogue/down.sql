-- The release before knows one exchange: it would follow the other's markets, and ask Polymarket for them. They can be read again.
delete from events where event_id in (select event_id from markets where exchange <> 'polymarket');

delete from markets where exchange <> 'polymarket';

delete from settings where name like 'discovery\_%';

drop table name_counts;

comment on table taxonomy_counts is null;

delete from stage_clocks where stage = 'discovery_kalshi';

comment on column markets.market_id is 'Condition id: 0x and 64 hex digits';

comment on column tokens.token_id is 'uint256 in decimal, up to 78 digits';

create or replace view pipeline_status as
select
    stage,
    case
        when lag_s is null then 'missing'
        when lag_s > fail_after_s or quality.worst = 'fail' then 'stale'
        when lag_s > warn_after_s or quality.worst = 'warn' then 'late'
        else 'fresh'
    end as status,
    last_data_at, beat_at, lag_s, warn_after_s, fail_after_s,
    case when quality.checks is null then detail else detail || jsonb_build_object('quality', quality.checks) end as detail,
    detail ? 'off' as off  -- not configured, says why in words: shown, and not held against the pipeline
from (
    -- The exchange's clock may be ahead of ours. (`greatest` passes over a null, so it needs the case.)
    select *, case when since is not null then greatest(0, date_part('epoch', now() - since)) end as lag_s
    from (
        select
            stage, last_data_at, beat_at, detail,
            case stage when 'discovery' then beat_at else last_data_at end as since,
            -- What an administrator has set goes before the clock's own; what makes no sense there counts as not set.
            coalesce(jsonb_path_query_first(warn.value, 'strict $ ? (@ >= 1 && @ <= 604800)')::int, warn_after_s) as warn_after_s,
            coalesce(jsonb_path_query_first(fail.value, 'strict $ ? (@ >= 1 && @ <= 604800)')::int, fail_after_s) as fail_after_s
        from stage_clocks
        left join settings as warn on warn.name = 'parameters.' || stage || '_warn_after_s'
        left join settings as fail on fail.name = 'parameters.' || stage || '_fail_after_s'
    ) as clocks
) as late
-- Checks of data quality that failed, and still count (docs/quality.md).
left join (
    select
        stage, min(severity) as worst,
        jsonb_object_agg(
            suite || '.' || name, jsonb_build_object('severity', severity, 'rows', rows_failed, 'failed_at', as_unix(failed_at))
        ) as checks
    from quality_checks
    where rows_failed > 0 or counts_until > now()
    group by stage
) as quality using (stage);

-- A view that is replaced keeps its columns.
drop view analytics.markets;

create view analytics.markets as
select
    market_id, slug, question, status, category, event_id, event_title, series, tags, outcomes, token_ids,
    array(select price * 0.000001 from unnest(outcome_prices) as o (price)) as outcome_prices,
    start_time, end_time, created_at, closed_at, resolved_at, winning_outcome, outcomes[winning_outcome + 1] as winner,
    volume_usd * 0.000001 as volume_usd, volume_24h_usd * 0.000001 as exchange_volume_24h_usd, liquidity_usd * 0.000001 as liquidity_usd,
    tick_size * 0.000001 as tick_size, neg_risk, url, source, first_seen_at, updated_at
from markets;

comment on view analytics.markets is 'Every market that was ever seen, one row each';

comment on column analytics.markets.market_id is 'Condition id: 0x and 64 hex digits; what every other view names a market by';

comment on column analytics.markets.slug is 'Readable name in the exchange''s addresses';

comment on column analytics.markets.question is 'What is bet on';

comment on column analytics.markets.status is 'ACTIVE, CLOSED (no longer traded) or RESOLVED (paid out)';

comment on column analytics.markets.category is 'Lower case';

comment on column analytics.markets.event_id is 'The exchange''s id of the event that the market belongs to';

comment on column analytics.markets.event_title is 'The event in words';

comment on column analytics.markets.series is 'The series that the event belongs to';

comment on column analytics.markets.tags is 'Tags of the event';

comment on column analytics.markets.outcomes is 'Names of the outcomes; an outcome''s number counts from 0, arrays from 1';

comment on column analytics.markets.token_ids is 'Tokens of the outcomes, in the same order; decimal numbers as text';

comment on column analytics.markets.outcome_prices is 'Prices of the outcomes as the exchange told them last, 0 to 1; once resolved, what each pays';

comment on column analytics.markets.start_time is 'Planned start';

comment on column analytics.markets.end_time is 'Planned end';

comment on column analytics.markets.created_at is 'When the exchange listed it';

comment on column analytics.markets.closed_at is 'When it was closed';

comment on column analytics.markets.resolved_at is 'When it was resolved';

comment on column analytics.markets.winning_outcome is 'Number of the outcome that won, from 0; null when unknown or when the payout is shared';

comment on column analytics.markets.winner is 'Name of the outcome that won';

comment on column analytics.markets.volume_usd is 'USD ever traded, as the exchange counts it';

comment on column analytics.markets.exchange_volume_24h_usd is 'USD traded in 24 hours, as the exchange counted it last';

comment on column analytics.markets.liquidity_usd is 'USD in the order book, as the exchange counted it last';

comment on column analytics.markets.tick_size is 'Smallest step of the price';

comment on column analytics.markets.neg_risk is 'Whether the event''s markets share their collateral';

comment on column analytics.markets.url is 'Its page at the exchange';

comment on column analytics.markets.source is 'exchange, tape (recordings) or simulated';

comment on column analytics.markets.first_seen_at is 'When this service first heard of it';

comment on column analytics.markets.updated_at is 'When something stored of it last changed';

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
                coalesce((select as_number(a.value_24h) from market_activity a where a.market_key = markets.market_key), 0) as volume_24h_usd,
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
