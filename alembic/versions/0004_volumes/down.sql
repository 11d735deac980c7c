-- Markets as the API shows them, beside what they are looked up and filtered by.
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
                as_number(volume_24h_usd) as volume_24h_usd,
                as_number(liquidity_usd) as liquidity_usd,
                neg_risk,
                image,
                url,
                as_unix(updated_at) as updated_at,
                source
        ) as r
    ) as record
from markets;

-- Live prices as the API shows them: of active markets, while the book agrees with the exchange and the feed is alive.
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
                (select as_number(sum(value_usd)::bigint) from market_stats_24h s where s.market_key = p.market_key) as volume_24h_usd,
                as_ms(p.ts) as ts,
                greatest(0, as_ms(now()) - as_ms(p.ts)) as age_ms
        ) as r
    ) as record
from live_prices p
join markets m using (market_key)
join live_books b on b.market_key = p.market_key and b.outcome = p.outcome
where m.status = 'ACTIVE' and b.verified and (select alive from alive_feed);

alter view analytics.markets rename column exchange_volume_24h_usd to volume_24h_usd;
