-- Prices as they stand.

-- name: of_outcome(market_key, outcome)$
-- The live price of one outcome.
select record::text from price_records where market_key = :market_key and outcome = :outcome;

-- name: of_ids(ids)$
-- The live price of each market's first outcome, by the id or slug it was asked by; null where there is none.
select json_object_agg(given.id, found.record)::text
from unnest(:ids::text[]) as given (id)
left join lateral (
    select (select p.record from price_records p where p.market_key = m.market_key and p.outcome = 0) as record
    from markets m
    where m.market_id = given.id or m.gamma_id = given.id or m.slug = given.id
    order by m.market_id = given.id desc, m.gamma_id = given.id desc nulls last, m.status = 'ACTIVE' desc, m.market_key desc
    limit 1
) as found on true;
