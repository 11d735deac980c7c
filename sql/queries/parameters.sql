-- name: stored(name)$
-- What a parameter was set to; nothing if nobody has set it.
select value
from settings
where name = :name;

-- name: all_stored(prefix)
-- Every parameter that somebody has set.
select name, value
from settings
where starts_with(name, :prefix);

-- name: store(name, value)!
-- Set a parameter.
insert into settings (name, value)
values (:name, to_jsonb(:value::numeric))
on conflict (name) do update set value = excluded.value, updated_at = now();

-- name: forget(name)!
-- Let a parameter have its default again.
delete from settings
where name = :name;
