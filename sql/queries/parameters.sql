-- name: stored(name)$
-- The stored value of a tunable; null if nobody has set it.
select value
from settings
where name = :name;

-- name: all_stored(prefix)
-- Every tunable that somebody has set.
select name, value
from settings
where starts_with(name, :prefix);

-- name: store(name, value)!
-- Sets a tunable.
insert into settings (name, value)
values (:name, to_jsonb(:value::numeric))
on conflict (name) do update set value = excluded.value, updated_at = now();

-- name: forget(name)!
-- Resets a tunable to its default.
delete from settings
where name = :name;
