-- Events for subscribers.

-- name: head()$
-- The newest event. Its row is written last in a transaction: whoever sees it sees every event up to it.
select last_seq from stream_head;

-- name: oldest()$
-- The oldest event kept.
select seq_from from stream_blocks order by seq_from limit 1;

-- name: advance(events)$
-- The stream's last number after taking `events` more. Called last in a transaction: the row is held until commit.
update stream_head set last_seq = last_seq + :events returning last_seq;

-- name: add_blocks(seq_from, seq_to, ts, data)*!
-- Adds blocks.
insert into stream_blocks (seq_from, seq_to, ts, data) values (:seq_from, :seq_to, :ts, :data);

-- name: between(after, upto)
-- The blocks with the events after one number and up to another, in order. A block has at most 2,000: both bounds of what is read are known
-- when the query is planned, so that other chunks are left out.
select seq_from, seq_to, ts, data
from stream_blocks
where seq_from > :after::bigint - 2000 and seq_from <= :upto::bigint and seq_to > :after::bigint
order by seq_from;

-- name: first_after(seq)$
-- The first number after another that the stream still has; null if none.
select greatest(seq_from, :seq::bigint + 1) from stream_blocks
where seq_from > :seq::bigint - 2000 and seq_to > :seq::bigint
order by seq_from
limit 1;

-- name: outcome_ids(market_keys)
-- The exchange's IDs of outcomes.
select t.market_key, t.outcome, m.market_id, t.token_id
from markets m
join tokens t using (market_key)
where m.market_key = any(:market_keys::int[]);

-- name: watchers(wallets, instants)
-- The accounts that watched wallets at some time.
select given.wallet, given.ts, array_agg(w.account_id)
from unnest(:wallets::bytea[], :instants::timestamptz[]) as given (wallet, ts)
join wallets_watched w
    on w.wallet = given.wallet and w.watched_at <= given.ts and (w.unwatched_at is null or w.unwatched_at > given.ts)
group by given.wallet, given.ts;

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
-- The ids of markets given by id, slug or the exchange's number.
select distinct on (given.id) given.id, m.market_id
from unnest(:ids::text[]) as given (id)
join markets m on m.gamma_id = given.id or m.slug = given.id or m.market_id = given.id
order by given.id, m.market_id = given.id desc, m.gamma_id = given.id desc nulls last, m.status = 'ACTIVE' desc, m.market_key desc;
