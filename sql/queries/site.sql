-- The site's own database queries; everything else it reads from the API.

-- name: renew(account, tier, key_hash, prefix)$
-- A key for a process of the site. Keys older than two hours are unused, so one of them is reused, which avoids a
-- new row for each hour and each process, and the others are revoked.
with owner as (
    insert into accounts (email, app_name) values (:account, 'the site itself')
    on conflict (email) do update set app_name = excluded.app_name
    returning account_id
), spare as (
    select k.key_id from api_keys k join owner using (account_id)
    where k.created_at < now() - interval '2 hours'
    order by k.key_id limit 1
    for update of k skip locked
), again as (
    update api_keys k
    set key_hash = :key_hash, prefix = :prefix, tier = :tier, created_at = now(), revoked_at = null
    from spare where k.key_id = spare.key_id
    returning k.key_id
), ended as (
    update api_keys k set revoked_at = now()
    from owner
    where k.account_id = owner.account_id and k.created_at < now() - interval '2 hours' and k.revoked_at is null
        and k.key_id not in (select key_id from spare)
), added as (
    insert into api_keys (account_id, key_hash, prefix, tier)
    select account_id, :key_hash, :prefix, :tier from owner where not exists (select from spare)
    returning key_id
)
select key_id from again union all select key_id from added;

-- name: tiers()
-- What each tier allows, the smallest first; null is by agreement.
select tier, credits_month, credits_burst, max_keys, max_webhooks, max_connections
from tiers
order by credits_month nulls last;
