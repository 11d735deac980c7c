-- Credits between the database and the hosts that spend them, and key registrations by address.

-- name: identity()$
-- A text that no two databases share, to identify the database.
select database_identity();

-- name: lease(key_id, month, lease_id, granted, step, wanted)^
-- More credits for a lease, as far as the quota allows: its total grant, at which step, and the state of the month.
select now_granted, now_step, month_used, month_left
from lease_credits(:key_id::int, :month, :lease_id, :granted, :step, :wanted);

-- name: settle(key_ids, months, lease_ids, steps, spent)
-- Ends leases, so that unspent credits are available to others, and returns whether each has ended.
select return_credits(key_id, month, lease_id, step, spent)
from unnest(:key_ids::int[], :months::timestamptz[], :lease_ids::bigint[], :steps::bigint[], :spent::bigint[])
    as lease (key_id, month, lease_id, step, spent);

-- name: registered(address, day)$
-- Counts a key registration of an address, and returns the day's number.
insert into registrations as r (address, day, asked) values (:address, :day, 1)
on conflict (address) do update
set day = excluded.day, asked = case when r.day = excluded.day then r.asked + 1 else 1 end
returning asked;

-- name: forget_registrations(day)!
-- Deletes earlier days.
delete from registrations where day < :day;
