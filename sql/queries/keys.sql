-- Accounts, keys and their credits.

-- name: account(email, app_name, use_case)$
-- The account of an address, made if it is new. Its row stays locked until the transaction ends: two registrations take turns.
insert into accounts (email, app_name, use_case) values (:email, :app_name, :use_case)
on conflict (email) do update set app_name = excluded.app_name, use_case = coalesce(excluded.use_case, accounts.use_case)
returning account_id;

-- name: room_for_key(account_id, tier)$
-- Whether the account may have one more key.
select t.max_keys is null or t.max_keys > (
    select count(*) from api_keys k where k.account_id = :account_id and k.revoked_at is null
)
from tiers t
where t.tier = :tier;

-- name: insert_key(account_id, key_hash, prefix, tier)^
-- A new key, and what it may do.
with added as (
    insert into api_keys (account_id, key_hash, prefix, tier) values (:account_id, :key_hash, :prefix, :tier)
    returning tier
)
select t.credits_month, t.credits_burst from tiers t join added using (tier);

-- name: by_hash(key_hash)^
-- A key that is valid, and what it may do; null is without limit.
select k.key_id, k.tier,
    coalesce(k.credits_month, t.credits_month),
    coalesce(k.credits_burst, t.credits_burst),
    coalesce(k.max_connections, t.max_connections)
from api_keys k
join tiers t using (tier)
where k.key_hash = :key_hash and k.revoked_at is null;

-- name: revoke(key_hash)^
-- Ends a key, and gives what its successor inherits.
update api_keys set revoked_at = now()
where key_hash = :key_hash and revoked_at is null
returning key_id, account_id, tier, credits_month, credits_burst, max_connections;

-- name: succeed(old_id, key_hash, prefix)!
-- The key that follows another, with its tier, limits and this month's use.
with added as (
    insert into api_keys (account_id, key_hash, prefix, tier, credits_month, credits_burst, max_connections)
    select account_id, :key_hash, :prefix, tier, credits_month, credits_burst, max_connections
    from api_keys where key_id = :old_id
    returning key_id
)
insert into credit_usage (key_id, month, used)
select added.key_id, u.month, u.used
from added, credit_usage u
where u.key_id = :old_id and u.month = date_trunc('month', now(), 'UTC');

-- name: lease(key_id, month, lease_id, wanted, most)^
-- Takes credits of a month for a host to spend, never beyond the quota; the same lease asked for again gives the same.
insert into credit_usage as u (key_id, month, used, lease_id, leased)
values (
    :key_id, to_timestamp(:month::bigint), least(:wanted::bigint, :most::bigint), :lease_id, least(:wanted::bigint, :most::bigint)
)
on conflict (key_id, month) do update set
    used = u.used + case when u.lease_id = excluded.lease_id then 0 else greatest(0, least(:wanted::bigint, :most::bigint - u.used)) end,
    leased = case when u.lease_id = excluded.lease_id then u.leased else greatest(0, least(:wanted::bigint, :most::bigint - u.used)) end,
    lease_id = excluded.lease_id
returning leased, used;

-- name: give_back(key_ids, months, credits)!
-- Credits that were leased and not spent.
update credit_usage u
set used = greatest(0, u.used - back.credits)
from unnest(:key_ids::int[], :months::bigint[], :credits::bigint[]) as back (key_id, month, credits)
where u.key_id = back.key_id and u.month = to_timestamp(back.month);

-- name: cursor_secret()$
-- What signs the cursors that clients hand back.
select value #>> '{}' from settings where name = 'cursor_secret';
