-- The audit trail.

-- name: add(action, result, account_id, key_id, operator, address, subject, detail)!
-- An entry.
insert into audit_log (action, result, account_id, key_id, operator, address, subject, detail)
values (
    :action, :result, :account_id::bigint, :key_id::int, :operator::text, :address::text, :subject::text, :detail::text::jsonb
);

-- name: count(minutes, actions, results, addresses, account_ids, key_ids, times)!
-- Counts requests of a minute, all workers' together.
insert into audit_counts as c (minute, action, result, address, account_id, key_id, times)
select to_timestamp(minute), action, result, address, account_id, key_id, times
from unnest(
    :minutes::bigint[], :actions::text[], :results::text[], :addresses::text[], :account_ids::bigint[], :key_ids::int[],
    :times::bigint[]
) as counted (minute, action, result, address, account_id, key_id, times)
on conflict (minute, action, result, address, account_id, key_id) do update set times = c.times + excluded.times;

-- name: close_minutes(before)
-- Enters the counts of the minutes before an instant, and returns these entries.
with over as (
    delete from audit_counts where minute < to_timestamp(:before)
    returning minute, action, result, times, nullif(account_id, 0) as account_id, nullif(key_id, 0) as key_id, address
)
insert into audit_log (ts, action, result, times, account_id, key_id, address)
select minute, action, result, times, account_id, key_id, address from over
returning ts, action, result, times, account_id, key_id, address;

-- name: listed(since, action, accounts, limit)
-- The newest entries, those of minutes that are not over yet included.
select ts, action, result, times, account_id, key_id, operator, address, subject, detail
from (
    select ts, action, result, times, account_id, key_id, operator, address, subject, detail, entry_id from audit_log
    union all
    select minute, action, result, times, nullif(account_id, 0), nullif(key_id, 0), null, address, null, '{}', null
    from audit_counts
) as entries
where ts >= :since::timestamptz
    and (:action::text is null or action = :action or starts_with(action, :action || '.'))
    and (:accounts::bigint[] is null or account_id = any(:accounts))
order by ts desc, entry_id desc
limit :limit;

-- name: accounts(email)
-- The accounts that have or had an email address.
select account_id from accounts where email = :email or former_email = :email;

-- name: last_backup()$
-- When a backup last succeeded, into a file or as a base backup, in Unix seconds; null if none ever has.
select date_part('epoch', greatest(
    (select max(ts) from audit_log where operator is not null and action = 'backup.file' and result = 'ok'),
    (select (value -> 'newest' ->> 'ended')::timestamptz from settings where name = 'base_backups')
));

-- name: forget_ended_keys(before)!
-- Deletes keys that were replaced long ago.
delete from ended_keys where ended_at < :before;
