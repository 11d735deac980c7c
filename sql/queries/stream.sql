-- Events for subscribers.

-- name: head()$
-- The newest event. Its row is written last in a transaction: whoever sees it sees every event up to it.
select last_seq from stream_head;

-- name: oldest()$
-- The oldest event kept.
select seq from stream_events order by seq limit 1;

-- name: between(after, upto, limit)
-- Events in order; for wallet activity, also the accounts that watched the wallet then.
select e.seq, e.type, e.market_id, e.wallet,
    case when e.wallet is not null then (
        select array_agg(w.account_id)
        from wallets_watched w
        where w.wallet = e.wallet and w.watched_at <= e.ts and (w.unwatched_at is null or w.unwatched_at > e.ts)
    ) end,
    e.message
from stream_events e
where e.seq > :after and e.seq <= :upto
order by e.seq
limit :limit;

-- name: follow(account_id, wallets, most)!
-- Follows wallets for a day, as long as events are kept, unless that makes too many for the account.
with over as (
    delete from wallets_followed
    where account_id = :account_id and until_at < now() and wallet <> all(:wallets::bytea[])
)
insert into wallets_followed (account_id, wallet, until_at)
select :account_id, wallet, now() + interval '1 day'
from unnest(:wallets::bytea[]) as given (wallet)
where cardinality(:wallets::bytea[]) + (
    select count(*) from wallets_followed
    where account_id = :account_id and until_at >= now() and wallet <> all(:wallets::bytea[])
) <= :most
on conflict (account_id, wallet) do update set until_at = excluded.until_at;

-- name: keep_following(accounts, wallets)!
-- Follows wallets for another day.
update wallets_followed f
set until_at = now() + interval '1 day'
from unnest(:accounts::bigint[], :wallets::bytea[]) as given (account_id, wallet)
where f.account_id = given.account_id and f.wallet = given.wallet and f.until_at < now() + interval '23 hours';

-- name: market_ids(ids)
-- The condition ids of markets given by slug or by the exchange's number.
select distinct on (given.id) given.id, m.market_id
from unnest(:ids::text[]) as given (id)
join markets m on m.gamma_id = given.id or m.slug = given.id
order by given.id, m.gamma_id = given.id desc nulls last, m.status = 'ACTIVE' desc, m.market_key desc;
