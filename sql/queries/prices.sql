-- Current prices.

-- name: of_outcome(market_key, outcome)$
-- The live price of one outcome.
select record::text from price_records where market_key = :market_key and outcome = :outcome;

-- name: of_ids(ids, names)^
-- The live price of each market's first outcome, by the id in the request, null where there is none; and the ids that name no
-- market.
select json_object_agg(given.id, found.record)::text, array_agg(given.id) filter (where found.market_key is null)
from unnest(:ids::text[], :names::text[]) as given (id, name)
left join lateral (
    select named.market_key, (select p.record from price_records p where p.market_key = named.market_key and p.outcome = 0) as record
    from (
        select coalesce(
            (select m.market_key from markets m where m.market_id = given.name),
            (select m.market_key from markets m where m.gamma_id = given.name),
            (select m.market_key from markets m where m.slug = given.name order by m.status = 'ACTIVE' desc, m.market_key desc limit 1)
        ) as market_key
        offset 0
    ) as named
) as found on true;
