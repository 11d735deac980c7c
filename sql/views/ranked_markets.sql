-- Markets with their recent activity, as rankings show them. How each figure comes about is said in queries/activity.sql.
create view ranked_markets as
select
    a.market_key, a.value_1h, a.trades_1h, a.value_24h, a.trades_24h, a.value_7d, a.trades_7d, a.spike_ratio, a.price_move,
    m.market_id, m.slug, m.question, m.event_title, m.status, a.exchange, m.record,
    (
        select row_to_json(r)
        from (
            select as_number(a.value_1h) as vol_1h, as_number(a.value_24h) as vol_24h, round(a.spike_ratio::numeric, 4)::float8 as spike_ratio
        ) as r
    ) as spike,
    (
        select row_to_json(r)
        from (
            select
                as_number(a.price_now) as price_now, as_number(a.price_baseline) as price_baseline, as_number(a.price_move) as price_move
        ) as r
    ) as move
from market_activity a
join market_records m using (market_key);
