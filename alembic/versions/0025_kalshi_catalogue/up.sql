-- Counts of names by exchange, and the clock of a second exchange's discovery.
create table name_counts (
    exchange text not null,
    kind text not null,
    name text not null,
    markets bigint not null,
    counted_at timestamp with time zone not null,
    constraint name_counts_pkey primary key (exchange, kind, name)
);

create index name_counts_markets_idx on name_counts (exchange, kind, markets desc, name);

comment on table name_counts is 'How many markets of an exchange have a category, tag or series';

comment on column name_counts.kind is 'category, tag or series';

insert into name_counts (exchange, kind, name, markets, counted_at)
select 'polymarket', kind, name, markets, counted_at from taxonomy_counts;

comment on table taxonomy_counts is 'What name_counts was before there were two exchanges: the release before still writes it';

insert into stage_clocks (stage, warn_after_s, fail_after_s, detail) values
    ('discovery_kalshi', 900, 1800, '{"off": "Kalshi is not configured: add kalshi to PRESAGE_EXCHANGES"}');

comment on column markets.market_id is 'Condition id: 0x and 64 hex digits; of Kalshi the ticker';

comment on column tokens.token_id is 'uint256 in decimal, up to 78 digits; of Kalshi TICKER:yes and TICKER:no';

-- Every exchange's discovery counts from its last look.
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
            case when stage like 'discovery%' then beat_at else last_data_at end as since,
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

create or replace view analytics.markets as
select
    market_id, slug, question, status, category, event_id, event_title, series, tags, outcomes, token_ids,
    array(select price * 0.000001 from unnest(outcome_prices) as o (price)) as outcome_prices,
    start_time, end_time, created_at, closed_at, resolved_at, winning_outcome, outcomes[winning_outcome + 1] as winner,
    volume_usd * 0.000001 as volume_usd, volume_24h_usd * 0.000001 as exchange_volume_24h_usd, liquidity_usd * 0.000001 as liquidity_usd,
    tick_size * 0.000001 as tick_size, neg_risk, url, source, first_seen_at, updated_at, exchange
from markets;

comment on column analytics.markets.market_id is 'Condition id: 0x and 64 hex digits; of Kalshi the ticker; what every other view names a market by';

comment on column analytics.markets.exchange is 'The exchange that lists it: polymarket or kalshi';

-- Volumes are of what is recorded.
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
