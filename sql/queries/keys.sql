-- Accounts, keys and their credits.

-- name: account(email, app_name, use_case)$
-- The account of an email address, created if it is new. Its row stays locked until the transaction ends: two registrations are
-- serialised.
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
-- A new key: its number and its limits.
with added as (
    insert into api_keys (account_id, key_hash, prefix, tier) values (:account_id, :key_hash, :prefix, :tier)
    returning key_id, tier
)
select added.key_id, t.credits_month, t.credits_burst from tiers t join added using (tier);

-- name: by_hash(key_hash)^
-- A valid key, and its limits; null is without limit.
select k.key_id, k.tier,
    coalesce(k.credits_month, t.credits_month),
    coalesce(k.credits_burst, t.credits_burst),
    coalesce(k.max_connections, t.max_connections),
    k.account_id
from api_keys k
join tiers t using (tier)
where k.key_hash = :key_hash and k.revoked_at is null;

-- name: ended(key_hash)^
-- Why a key is valid no longer: `revoked` or `replaced`, and whose it was.
select 'revoked', account_id, key_id from api_keys where key_hash = :key_hash and revoked_at is not null
union all
select 'replaced', k.account_id, k.key_id from ended_keys e join api_keys k using (key_id) where e.key_hash = :key_hash
limit 1;

-- name: valid()
-- The digests of all valid keys.
select key_hash from api_keys where revoked_at is null;

-- name: rotate(old_hash, key_hash, prefix)$
-- Replaces a valid key by a new one: all that belongs to it stays.
update api_keys set key_hash = :key_hash, prefix = :prefix
where key_hash = :old_hash and revoked_at is null
returning key_id;

-- name: replace(key_id, key_hash, prefix)!
-- The same, by the key's number.
update api_keys set key_hash = :key_hash, prefix = :prefix where key_id = :key_id::int and revoked_at is null;

-- name: named(prefix, key_hash, email)
-- The keys that a prefix, a digest or an owner refers to.
select k.key_id, k.prefix, k.revoked_at is not null
from api_keys k
join accounts a using (account_id)
where k.prefix = :prefix or k.key_hash = :key_hash or a.email = :email
order by k.key_id;

-- name: revoke(key_id)$
-- Revokes a key, and returns its account.
update api_keys set revoked_at = coalesce(revoked_at, now()) where key_id = :key_id::int returning account_id;

-- name: tiers()
-- The names of the tiers, the smallest first.
select tier from tiers order by credits_month nulls last;

-- name: holder(key_id)^
-- The key's account and tier.
select account_id, tier from api_keys where key_id = :key_id::int;

-- name: put_into_tier(key_id, tier)!
-- Gives a key another tier.
update api_keys set tier = :tier where key_id = :key_id::int;

-- name: limits(key_id)^
-- The key's own limits.
select credits_month, credits_burst, max_connections, max_webhooks, webhook_messages_day from api_keys where key_id = :key_id::int;

-- name: set_limits(key_id, credits_month, credits_burst, max_connections, max_webhooks, webhook_messages_day)!
-- Sets the key's own limits; null is its tier's.
update api_keys
set credits_month = :credits_month::bigint, credits_burst = :credits_burst::int, max_connections = :max_connections::int,
    max_webhooks = :max_webhooks::int, webhook_messages_day = :webhook_messages_day::bigint
where key_id = :key_id::int;
