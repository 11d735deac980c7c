-- Webhooks, from their owners' changes to queued and delivered events.

-- --- Their owners -------------------------------------------------------------------------------------------------------------

-- name: hold_account(account_id)!
-- Serialises the account's changes of webhooks until the transaction ends, so that limits are exact.
select from accounts where account_id = :account_id for no key update;

-- name: room(account_id, key_id, webhook_id)^
-- How many webhooks and wallets the account has beside this one, and how many webhooks the key's tier allows (null: any number).
select
    (select count(*) from webhooks w where w.account_id = :account_id and w.webhook_id is distinct from :webhook_id::uuid),
    (
        select count(*) from webhooks w cross join unnest(w.wallets)
        where w.account_id = :account_id and w.webhook_id is distinct from :webhook_id::uuid
    ),
    (select coalesce(k.max_webhooks, t.max_webhooks) from api_keys k join tiers t using (tier) where k.key_id = :key_id);

-- name: may_be_unfiltered(key_id)$
-- Whether the key's tier allows webhooks that receive all trades.
select t.unfiltered_webhooks from api_keys k join tiers t using (tier) where k.key_id = :key_id;

-- name: count_challenge(account_id, day, most)$
-- Counts a challenge of the day; null if there were that many (null: any number is allowed).
insert into webhook_usage as u (account_id, day, challenges) values (:account_id, :day, 1)
on conflict (account_id) do update
set day = greatest(u.day, excluded.day),
    attempts = case when u.day < excluded.day then 0 else u.attempts end,
    challenges = case when u.day < excluded.day then 1 else u.challenges + 1 end
where u.day < excluded.day or :most::bigint is null or u.challenges < :most::bigint
returning challenges;

-- name: challenge(account_id, webhook_id, challenge)!
-- From now on nothing but this challenge is sent, until the receiver repeats it.
update webhooks set challenge = :challenge, updated_at = now()
where account_id = :account_id and webhook_id = :webhook_id;

-- name: verified(webhook_id, challenge, now)!
-- The receiver has repeated the challenge. Events are delivered from now on, or from where deliveries had been held back.
update webhooks
set challenge = null, updated_at = now(), verified_at = coalesce(verified_at, :now),
    since_seq = case when verified_at is null then (select last_seq from stream_head) else since_seq end
where webhook_id = :webhook_id and challenge = :challenge;

-- name: add(account_id, url, events, market_ids, wallets, min_usd, secret)$
-- A new webhook, which receives events once its receiver is verified.
insert into webhooks (account_id, url, events, market_ids, wallets, min_usd, secret, since_seq, verified_at)
select :account_id, :url, :events::text[], :market_ids::text[], :wallets::bytea[], :min_usd, :secret, last_seq, null
from stream_head
returning webhook_id;

-- name: change(account_id, webhook_id, url, events, market_ids, wallets, min_usd)!
-- Updates everything that its owner can set.
update webhooks
set url = :url, events = :events::text[], market_ids = :market_ids::text[], wallets = :wallets::bytea[], min_usd = :min_usd,
    updated_at = now()
where account_id = :account_id and webhook_id = :webhook_id;

-- name: enable(account_id, webhook_id)!
-- Enables a disabled webhook for events from now on, and requeues what still waits, with ten attempts again.
with woken as (
    update webhooks
    set disabled_at = null, disabled_reason = null, since_seq = (select last_seq from stream_head), updated_at = now(),
        due_at = case when waiting > 0 and challenge is null then now() end
    where account_id = :account_id and webhook_id = :webhook_id and disabled_at is not null
    returning webhook_id
)
update webhook_deliveries set next_at = now(), attempts = 0
from woken
where webhook_deliveries.webhook_id = woken.webhook_id and state = 'waiting';

-- name: disable(webhook_id, reason)!
-- Stops delivering and queueing; what waits is kept.
update webhooks set disabled_at = now(), disabled_reason = :reason, updated_at = now()
where webhook_id = :webhook_id and disabled_at is null;

-- name: remove(account_id, webhook_id)!
-- Deletes a webhook and its deliveries.
delete from webhooks where account_id = :account_id and webhook_id = :webhook_id;

-- name: changed()!
-- Makes the dispatcher reload the webhooks. Last in a transaction, as the dispatcher uses the row too.
update webhook_head set version = version + 1;

-- name: settings_of(account_id, webhook_id)^
-- A webhook's settings by its owner, locked until the transaction ends.
select url, events, market_ids, wallets, min_usd
from webhooks
where account_id = :account_id and webhook_id = :webhook_id
for update;

-- name: begin_rotation(account_id, webhook_id, secret)$
-- Adds a new secret that signs beside the old one; null if there was one already.
update webhooks set next_secret = :secret, updated_at = now()
where account_id = :account_id and webhook_id = :webhook_id and next_secret is null
returning true;

-- name: finish_rotation(account_id, webhook_id)$
-- From now on the new secret alone signs; null if there is none.
update webhooks set secret = next_secret, next_secret = null, updated_at = now()
where account_id = :account_id and webhook_id = :webhook_id and next_secret is not null
returning true;

-- name: cancel_rotation(account_id, webhook_id)$
-- Keeps the old secret and deletes the new one; null if there is none.
update webhooks set next_secret = null, updated_at = now()
where account_id = :account_id and webhook_id = :webhook_id and next_secret is not null
returning true;

-- name: secrets_in_clear()$
-- Whether secrets are stored as clear text, which does not change until the transaction ends; null: no.
select true from settings where name = 'webhook_secrets_in_clear' for share;

-- name: store_encrypted()!
-- From now on new secrets are encrypted.
delete from settings where name = 'webhook_secrets_in_clear';

-- name: store_in_clear()!
-- From now on new secrets are clear text.
insert into settings (name, value) values ('webhook_secrets_in_clear', 'true') on conflict (name) do nothing;

-- name: stored_secrets(after, limit)
-- The next webhooks' secrets as they are stored, locked until the transaction ends.
select number, webhook_id, secret, next_secret from webhooks where number > :after order by number limit :limit for update;

-- name: store_secrets(webhook_id, secret, next_secret)!
-- Stores the same secrets in another form.
update webhooks set secret = :secret, next_secret = :next_secret where webhook_id = :webhook_id;

-- name: unencrypted()$
-- How many webhooks have a secret in clear text.
select count(*) from webhooks where starts_with(secret, 'whsec_') or starts_with(next_secret, 'whsec_');

-- name: encrypted_sample()$
-- An encrypted secret, the oldest; null if there is none.
select secret from webhooks where not starts_with(secret, 'whsec_') order by number limit 1;

-- name: record(account_id, webhook_id)$
-- A webhook.
select record::text from webhook_records where account_id = :account_id and webhook_id = :webhook_id;

-- name: listed(account_id, after, limit)
-- The account's webhooks in order of creation, number and record.
select number, record::text
from webhook_records
where account_id = :account_id and number > :after
order by number
limit :limit;

-- name: deliveries(account_id, webhook_id, state, before, limit)
-- Deliveries of a webhook, newest first, number and record.
select number, record::text
from delivery_records
where account_id = :account_id and webhook_id = :webhook_id and (:state::text is null or state = :state) and number < :before
order by number desc
limit :limit;

-- name: delivery(account_id, webhook_id, delivery_id)$
-- One delivery.
select record::text from delivery_records
where account_id = :account_id and webhook_id = :webhook_id and delivery_id = :delivery_id;

-- name: add_test(webhook_id, type, body, now, most)$
-- A test message, queued before all that waits; null if too many of them wait already.
insert into webhook_deliveries (webhook_id, type, body, next_at, created_at)
select :webhook_id, :type, :body, :now, :now
where (
    select count(*) from webhook_deliveries where webhook_id = :webhook_id and state = 'waiting' and seq is null
) < :most::int
returning delivery_id;

-- name: again(webhook_id, delivery_id, now)$
-- Requeues an ended delivery, behind what waits; makes a waiting one due at once, in its turn. Returns how many more wait.
update webhook_deliveries d
set state = 'waiting', next_at = :now, ended_at = null,
    attempts = case when old.state = 'waiting' then d.attempts else 0 end,
    number = case when old.state = 'waiting' then d.number else nextval(pg_get_serial_sequence('webhook_deliveries', 'number')) end
from webhook_deliveries old
where old.delivery_id = d.delivery_id and d.webhook_id = :webhook_id and d.delivery_id = :delivery_id
returning case when old.state = 'waiting' then 0 else 1 end;

-- name: follow_now(webhook_id)!
-- Follows the wallets that a webhook names from the next block on.
insert into wallets_followed (account_id, wallet, until_at)
select account_id, wallet, now() + interval '1 day'
from webhooks
cross join unnest(wallets) as named (wallet)
where webhook_id = :webhook_id and 'wallet_activity' = any(events)
order by wallet
on conflict (account_id, wallet) do update set until_at = greatest(wallets_followed.until_at, excluded.until_at);

-- --- From events to deliveries ------------------------------------------------------------------------------------------------

-- name: wanted()$
-- Whether anything is to be delivered.
select exists (select from webhooks where disabled_at is null);

-- name: head()^
-- The stream's last number, up to where it has been processed, and the version of the webhooks.
select s.last_seq, h.last_seq, h.version from stream_head s cross join webhook_head h;

-- name: subscriptions()
-- The subscription of each enabled webhook that was verified once. While a new URL is being verified, deliveries wait.
select webhook_id, account_id, events, market_ids, wallets, min_usd, since_seq
from webhooks
where disabled_at is null and verified_at is not null
order by number;

-- name: published_at(seq)$
-- When an event was published.
select ts from stream_blocks where seq_from > :seq::bigint - 2000 and seq_from <= :seq order by seq_from desc limit 1;

-- name: queue(webhook_ids, seqs, types, bodies, now)$
-- Queues deliveries, in this order; existing ones are left alone. Returns how many were new.
with added as (
    insert into webhook_deliveries (webhook_id, seq, type, body, next_at, created_at)
    select given.webhook_id, given.seq, given.type, given.body, :now, :now
    from unnest(:webhook_ids::uuid[], :seqs::bigint[], :types::text[], :bodies::text[])
        with ordinality as given (webhook_id, seq, type, body, nth)
    join webhooks w on w.webhook_id = given.webhook_id and w.disabled_at is null  -- it may have been removed, or just disabled
    order by given.nth
    on conflict (webhook_id, seq) where seq is not null do nothing
    returning webhook_id
),
counted as (
    select webhook_id, count(*)::int as new from added group by webhook_id
),
due as (
    update webhooks w
    set waiting = w.waiting + counted.new, due_at = case when w.challenge is null then coalesce(w.due_at, :now) else w.due_at end
    from counted
    where w.webhook_id = counted.webhook_id
)
select coalesce(sum(new), 0)::int from counted;

-- name: disable_overfull(most, reason)$
-- Disables webhooks for which too many deliveries wait, if the first of them has failed since then; returns how many.
with over as (
    update webhooks w set disabled_at = now(), disabled_reason = :reason, updated_at = now()
    where waiting > :most and disabled_at is null and exists (
        select from (
            select d.attempts, (d.log -> -1 ->> 'ts')::bigint as tried from webhook_deliveries d
            where d.webhook_id = w.webhook_id and d.state = 'waiting' and d.seq is not null
            order by d.number
            limit 1
        ) as head
        where head.attempts > 0 and head.tried >= (
            select floor(extract(epoch from d.created_at) * 1000) from webhook_deliveries d  -- what made it too much
            where d.webhook_id = w.webhook_id and d.state = 'waiting' and d.seq is not null
            order by d.number
            offset :most::int limit 1
        )
    )
    returning webhook_id
)
select count(*) from over;

-- name: disable_held_back(most, reason, now)$
-- Disables webhooks for which too many deliveries wait for a verification or for the next day's budget; returns how many.
with over as (
    update webhooks set disabled_at = now(), disabled_reason = :reason, updated_at = now()
    where waiting > :most and disabled_at is null and (challenge is not null or over_budget_until > :now::timestamptz)
    returning webhook_id
)
select count(*) from over;

-- name: disable_slow(most, reason)!
-- Disables webhooks for which more deliveries wait than are kept for any.
update webhooks set disabled_at = now(), disabled_reason = :reason, updated_at = now()
where waiting > :most and disabled_at is null;

-- name: seen(seq)!
-- Records that events up to here have become deliveries.
update webhook_head set last_seq = :seq;

-- name: follow()!
-- Follows wallets that webhooks name for another day.
insert into wallets_followed (account_id, wallet, until_at)
select distinct account_id, wallet, now() + interval '1 day'
from webhooks
cross join unnest(wallets) as named (wallet)
where disabled_at is null and 'wallet_activity' = any(events)
order by account_id, wallet
on conflict (account_id, wallet) do update set until_at = greatest(wallets_followed.until_at, excluded.until_at);

-- --- Delivering ---------------------------------------------------------------------------------------------------------------

-- name: due(now, day, busy, accounts, slots, attempts, most, webhooks, each)
-- The first due deliveries of each webhook, except those being delivered to, limited by webhooks and deliveries each. Accounts
-- take turns: first the one that holds the fewest slots, of equal ones the one that has waited longest, and none beyond `most`
-- slots. With what is left of the account's budget of the day (null: any number); nothing of an account without any left.
with held as (
    select * from unnest(:accounts::bigint[], :slots::int[], :attempts::int[]) as held (account_id, slots, attempts)
),
ready as (
    select w.*, coalesce(held.slots, 0) + row_number() over (partition by w.account_id order by w.due_at, w.number) as turn
    from webhooks w
    left join held using (account_id)
    where w.due_at <= :now and w.disabled_at is null and w.webhook_id <> all(:busy::uuid[])
),
chosen as (
    select ready.*, budget.remaining
    from ready
    cross join lateral (
        select b.a_day - coalesce(held.attempts, 0) - case when u.day = :day then u.attempts else 0 end as remaining
        from webhook_budgets b
        left join webhook_usage u using (account_id)
        left join held using (account_id)
        where b.account_id = ready.account_id
    ) as budget
    where turn <= :most and (remaining is null or remaining > 0)
    order by turn, due_at
    limit :webhooks
)
select w.account_id, w.remaining, w.webhook_id, d.delivery_id, w.url, array_remove(array[w.next_secret, w.secret], null), d.body, d.attempts,
    d.seq is null, d.type, d.next_at
from chosen w
cross join lateral (
    select * from webhook_deliveries d
    where d.webhook_id = w.webhook_id and d.state = 'waiting'
        and (w.challenge is null or d.seq is null and d.type = 'webhook.challenge')
    order by (d.seq is not null), d.number
    limit :each
) as d
order by w.turn, w.due_at, w.webhook_id, (d.seq is not null), d.number;

-- name: hold_back(now, day, until, recheck)!
-- Holds back what is due of accounts whose budget of the day is used up. Rechecked now and then: the budget may be raised.
with used_up as (
    select due.account_id
    from (select distinct account_id from webhooks where due_at <= :now and disabled_at is null) as due
    join webhook_usage u using (account_id)
    cross join lateral (select a_day from webhook_budgets b where b.account_id = due.account_id) as budget
    where u.day = :day and u.attempts >= budget.a_day
)
update webhooks w set due_at = least(:until::timestamptz, :recheck::timestamptz), over_budget_until = :until
from used_up
where w.account_id = used_up.account_id and w.due_at <= :now and w.disabled_at is null;

-- name: count_attempts(accounts, day)!
-- Counts attempts of the day, one for each time that an account is given.
insert into webhook_usage as u (account_id, day, attempts)
select account_id, :day, count(*) from unnest(:accounts::bigint[]) as made (account_id) group by account_id order by account_id
on conflict (account_id) do update
set day = greatest(u.day, excluded.day),
    attempts = case when u.day < excluded.day then 0 else u.attempts end + excluded.attempts,
    challenges = case when u.day < excluded.day then 0 else u.challenges end;

-- name: hold(webhook_id)!
-- Serialises changes of a webhook until the transaction ends.
select from webhooks where webhook_id = :webhook_id for update;

-- name: record_attempt(delivery_id, attempts, state, next_at, ended_at, entry, most)!
-- Stores the result of an attempt.
update webhook_deliveries
set attempts = :attempts, state = :state, next_at = :next_at, ended_at = :ended_at,
    log = (case when jsonb_array_length(log) >= :most::int then log - 0 else log end) || :entry::jsonb
where delivery_id = :delivery_id and state = 'waiting';

-- name: go_on(webhook_id, more, now)!
-- Updates the first waiting delivery that may be sent, and the number waiting.
update webhooks w
set waiting = greatest(w.waiting + :more::int, 0), over_budget_until = null,
    due_at = (
        select greatest(d.next_at, :now::timestamptz) from webhook_deliveries d
        where d.webhook_id = w.webhook_id and d.state = 'waiting'
            and (w.challenge is null or d.seq is null and d.type = 'webhook.challenge')
        order by (d.seq is not null), d.number
        limit 1
    )
where w.webhook_id = :webhook_id;

-- name: standing(now)^
-- Enabled webhooks, deliveries that wait for them, those that are due, and since when the longest of these waits.
select count(*), coalesce(sum(waiting), 0)::bigint, count(*) filter (where due_at <= :now), min(due_at) filter (where due_at <= :now)
from webhooks
where disabled_at is null;

-- name: switch_off(why)!
-- Sets in the stage's clock why nothing is delivered.
update stage_clocks set detail = jsonb_build_object('off', :why::text)
where stage = 'delivery' and detail ->> 'off' is distinct from :why::text;

-- name: switch_on()!
-- Marks the stage as running.
update stage_clocks set detail = detail - 'off', last_data_at = now() where stage = 'delivery' and detail ? 'off';

-- name: forget(before, most)!
-- Deletes deliveries that ended long ago.
delete from webhook_deliveries
where delivery_id in (select delivery_id from webhook_deliveries where ended_at < :before order by ended_at limit :most);
