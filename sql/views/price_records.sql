-- Live prices as the API shows them: of active markets, while the book agrees with the exchange and the feed is alive.
create view price_records as
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
where m.status = 'ACTIVE' and b.verified and m.exchange = any ((select live_exchanges())::text[]);
