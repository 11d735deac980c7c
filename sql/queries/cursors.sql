-- Secrets that sign the cursors given to clients.

-- name: secrets()
-- The secrets, newest first: the first signs, any verifies. A former one does so until its time is over.
select secret from cursor_secrets() as secret;

-- name: keep_identity()!
-- Keeps what identifies the database, and so where its credits are counted, before the first secret is replaced.
insert into settings (name, value)
select 'identity', value from settings where name = 'cursor_secret'
on conflict do nothing;

-- name: retire(valid_s)!
-- Makes the newest secret a former one, which verifies for so many seconds more; 0: neither it nor those before it do.
-- Locks it: whoever rotates at the same time waits, and retires the next.
insert into settings (name, value)
select 'former_cursor_secrets', case
    when :valid_s::int = 0 then '[]'
    else jsonb_build_array(jsonb_build_object('secret', value, 'until', now() + make_interval(secs => :valid_s::int)))
end
from settings
where name = 'cursor_secret'
for update
on conflict (name) do update
set value = case
    when :valid_s::int = 0 then '[]'
    else excluded.value || (
        select coalesce(jsonb_agg(each), '[]')
        from jsonb_array_elements(settings.value) as list (each)
        where (each ->> 'until')::timestamptz > now()
    )
end, updated_at = now();

-- name: renew()!
-- Replaces the newest secret. The database makes the new one, so that no statement has it.
update settings
set value = to_jsonb(encode(sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')), 'hex')),
    updated_at = now()
where name = 'cursor_secret';
