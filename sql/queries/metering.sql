-- Credits between the database and the hosts that spend them, and keys asked for from one address.

-- name: identity()$
-- A text that no two databases share, to tell what belongs to which.
select concat_ws(':', (select value #>> '{}' from settings where name = 'cursor_secret'), oid)
from pg_database
where datname = current_database();

-- name: lease(key_id, month, lease_id, granted, step, wanted)^
-- More credits for a lease, as far as the quota reaches: what it has been granted by now, at which step, and how the month stands.
select now_granted, now_step, month_used, month_left
from lease_credits(:key_id::int, :month, :lease_id, :granted, :step, :wanted);

-- name: settle(key_ids, months, lease_ids, steps, spent)
-- Ends leases, so that what they have not spent is there for others, and tells of each whether it has ended.
select return_credits(key_id, month, lease_id, step, spent)
from unnest(:key_ids::int[], :months::timestamptz[], :lease_ids::bigint[], :steps::bigint[], :spent::bigint[])
    as lease (key_id, month, lease_id, step, spent);

-- name: registered(address, day)$
-- Counts a key asked for from an address, and tells how many that makes in the day.
insert into registrations as r (address, day, asked) values (:address, :day, 1)
on conflict (address) do update
set day = excluded.day, asked = case when r.day = excluded.day then r.asked + 1 else 1 end
returning asked;

-- name: forget_registrations(day)!
-- Forgets the days before.
delete from registrations where day < :day;
