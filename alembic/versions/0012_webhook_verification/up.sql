alter table tiers add column webhook_messages_day bigint;
alter table tiers add column unfiltered_webhooks boolean not null default false;
update tiers set webhook_messages_day = case tier when 'free' then 10000 when 'pro' then 1000000 end, unfiltered_webhooks = tier = 'enterprise';
comment on column tiers.webhook_messages_day is 'Attempts to deliver, of all webhooks of an account';
comment on column tiers.unfiltered_webhooks is 'Whether a webhook may receive all trades';

alter table api_keys add column webhook_messages_day bigint;
comment on column api_keys.webhook_messages_day is 'Overrides the tier''s';

-- Webhooks that exist stay active, as do those that the version before creates meanwhile: the default is the time of this change.
alter table webhooks add column verified_at timestamp with time zone default now();
alter table webhooks add column challenge text;
alter table webhooks add column over_budget_until timestamp with time zone;
comment on column webhooks.verified_at is 'When the receiver first repeated a challenge; null: never';
comment on column webhooks.challenge is 'What the receiver is to repeat before anything else is sent; null: it has';
comment on column webhooks.over_budget_until is 'The account''s messages of the day are used up; null: not known to be';

create table webhook_usage (
    account_id bigint not null,
    day timestamp with time zone not null,
    attempts bigint not null default 0,
    challenges integer not null default 0,
    constraint webhook_usage_pkey primary key (account_id),
    constraint webhook_usage_account_id_fkey foreign key (account_id) references accounts (account_id)
) with (fillfactor = 50);
comment on table webhook_usage is 'What the webhooks of an account were sent on the latest day';
comment on column webhook_usage.day is 'Its first instant, UTC';

-- Messages a day that the webhooks of an account may be sent; null: any number. Of its keys, the most generous counts; an
-- account without a valid key has what the free tier has.
create view webhook_budgets as
select account_id, case when bool_and(a_day is not null) then max(a_day) end as a_day
from (
    select a.account_id, coalesce(k.webhook_messages_day, t.webhook_messages_day) as a_day
    from accounts a
    left join api_keys k on k.account_id = a.account_id and k.revoked_at is null
    join tiers t on t.tier = coalesce(k.tier, 'free')
) as keys
group by account_id;

-- Webhooks as the API shows them. The secret is shown when it is made, and never again.
create or replace view webhook_records as
select
    webhook_id, account_id, number,
    json_build_object(
        'id', webhook_id,
        'url', url,
        'events', events,
        'markets', market_ids,
        'wallets', case when wallets is not null then (
            select json_agg('0x' || encode(wallet, 'hex') order by nth) from unnest(wallets) with ordinality as w (wallet, nth)
        ) end,
        'min_usd', as_number(min_usd),
        'enabled', disabled_at is null,
        'state', case
            when disabled_at is not null then 'disabled'
            when challenge is not null then 'pending'
            when over_budget_until > now() then 'over_budget'
            else 'active'
        end,
        'verified_at', as_unix(verified_at),
        'disabled_reason', disabled_reason,
        'disabled_at', as_unix(disabled_at),
        'rotating', next_secret is not null,
        'waiting', waiting,
        'next_at', case when disabled_at is null then as_unix(greatest(due_at, over_budget_until)) end,
        'created_at', as_unix(created_at),
        'updated_at', as_unix(updated_at)
    ) as record
from webhooks;

-- Deliveries of webhooks as the API shows them.
create or replace view delivery_records as
select
    d.delivery_id, d.webhook_id, w.account_id, d.state, d.created_at, d.number,
    json_build_object(
        'id', d.delivery_id,
        'webhook_id', d.webhook_id,
        'message_id', 'msg_' || replace(d.delivery_id::text, '-', ''),
        'type', d.type,
        'seq', d.seq,
        'state', d.state,
        'attempts', d.attempts,
        'next_at', as_unix(d.next_at),
        'created_at', as_unix(d.created_at),
        'ended_at', as_unix(d.ended_at),
        'log', d.log,
        -- Only the receiver gets to know the challenge: that it repeats it proves who answers.
        'payload', case when d.type = 'webhook.challenge' then (d.body::jsonb #- '{data,challenge}')::json else d.body::json end
    ) as record
from webhook_deliveries d
join webhooks w using (webhook_id);
