-- Markets as the API shows them, beside what they are looked up and filtered by.
create view market_records as
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
                    -- Nothing is known of one that is not recorded.
                    case when exchange = any ((select enabled_exchanges())::text[]) then 0 end
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
