-- Events for subscribers.

-- name: head()$
-- The newest event. Its row is written last in a transaction: whoever sees it sees every event up to it.
select last_seq from stream_head;

-- name: oldest()$
-- The oldest event kept.
select seq from stream_events order by seq limit 1;

-- name: between(after, upto, limit)
-- Events in order.
select seq, type, market_id, message
from stream_events
where seq > :after and seq <= :upto
order by seq
limit :limit;

-- name: market_ids(ids)
-- The condition ids of markets given by slug or by the exchange's number.
select distinct on (given.id) given.id, m.market_id
from unnest(:ids::text[]) as given (id)
join markets m on m.gamma_id = given.id or m.slug = given.id
order by given.id, m.gamma_id = given.id desc nulls last, m.status = 'ACTIVE' desc, m.market_key desc;
