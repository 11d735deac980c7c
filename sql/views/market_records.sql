-- Markets as the API shows them, beside what they are looked up and filtered by.
create view market_records as
select
    market_key, market_id, gamma_id, slug, question, status, exchange, event_id, category, series, tags, end_time, created_at,
    json_build_object(
        'market_id', market_id,
        'slug', slug,
        'question', question,
        'status', status,
        'exchange', exchange,
        'event_id', event_id,
        'category', category,
        'series', series,
        'tags', to_json(tags),
        'outcomes', to_json(outcomes),
        'token_ids', to_json(token_ids),
        'outcome_prices', (
            select coalesce(json_agg(as_number(price) order by place), '[]')
            from unnest(outcome_prices) with ordinality as o (price, place)
        ),
        'start_time', as_unix(start_time),
        'end_time', as_unix(end_time),
        'created_at', as_unix(created_at),
        'resolved_at', as_unix(resolved_at),
        'winning_outcome', winning_outcome,
        'volume_usd', as_number(volume_usd),
        'volume_24h_usd', as_number(volume_24h_usd),
        'liquidity_usd', as_number(liquidity_usd),
        'neg_risk', neg_risk,
        'image', image,
        'url', url,
        'updated_at', as_unix(updated_at),
        'source', source
    ) as record
from markets;
