-- Credits are leased to hosts, some at a time. `used` of the month holds what is leased: a host that goes down takes its
-- unspent credits along, and nobody ever gets one more than the quota.
--
-- A host and the database agree on `granted` by `step`, which each change raises. Who asks says the step it knows; if the
-- database is ahead, an answer got lost (its asker was killed, or another was first), and is told again: nothing is taken twice.

create function lease_credits(
    of_key integer, in_month timestamptz, of_lease bigint, known_granted bigint, known_step bigint, wanted bigint,
    out now_granted bigint, out now_step bigint, out month_used bigint, out month_left bigint
)
language plpgsql
as $$
declare
    held credit_leases;
    quota bigint;
    more bigint;
begin
    insert into credit_usage (key_id, month) values (of_key, in_month) on conflict do nothing;
    -- Everyone locks this row first: who leases and who returns take turns.
    select u.used into month_used from credit_usage u where u.key_id = of_key and u.month = in_month for update;
    select coalesce(k.credits_month, t.credits_month) into quota
    from api_keys k join tiers t using (tier) where k.key_id = of_key;
    select * into held from credit_leases l where l.lease_id = of_lease;

    now_granted := known_granted;
    now_step := known_step;
    if held.lease_id is null and known_step > 0 then
        now_step := -1;  -- It has ended: what it had not spent is no longer its own.
    elsif held.step <> known_step then
        now_granted := held.granted;
        now_step := held.step;
    elsif held.granted > known_granted then
        -- A return that was begun and not finished. It will not be: its step has passed.
        now_granted := held.granted;
        now_step := known_step + 1;
        update credit_leases l set step = now_step where l.lease_id = of_lease;
    else
        more := greatest(0, least(wanted, coalesce(quota - month_used, wanted)));  -- a lowered quota may lie below what is used
        if more > 0 then
            now_granted := known_granted + more;
            now_step := known_step + 1;
            month_used := month_used + more;
            update credit_usage u set used = month_used where u.key_id = of_key and u.month = in_month;
            update credit_leases l set granted = now_granted, step = now_step where l.lease_id = of_lease;
            if not found then
                insert into credit_leases (lease_id, key_id, month, granted, step)
                values (of_lease, of_key, in_month, now_granted, now_step);
                delete from credit_leases l where l.key_id = of_key and l.month < in_month - interval '40 days';
            end if;
        end if;
    end if;
    month_left := case when quota is not null then greatest(0, quota - month_used) end;
end
$$;

-- Ends a lease and takes back what it has not spent. If it has moved on since the step that the caller knows, nothing is
-- done and the answer is false; a caller who knows that nobody spends from it any more gives no step.
create function return_credits(of_key integer, in_month timestamptz, of_lease bigint, known_step bigint, spent bigint) returns boolean
language plpgsql
as $$
declare
    held credit_leases;
begin
    perform from credit_usage u where u.key_id = of_key and u.month = in_month for update;
    select * into held from credit_leases l where l.lease_id = of_lease;
    if held.step <> known_step then
        return false;
    end if;
    delete from credit_leases l where l.lease_id = of_lease;
    update credit_usage u set used = u.used - greatest(0, held.granted - spent)
    where u.key_id = of_key and u.month = in_month and held.granted > spent;
    return true;
end
$$;
