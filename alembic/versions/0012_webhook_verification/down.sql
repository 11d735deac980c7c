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
        'disabled_reason', disabled_reason,
        'disabled_at', as_unix(disabled_at),
        'rotating', next_secret is not null,
        'waiting', waiting,
        'next_at', case when disabled_at is null then as_unix(due_at) end,
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
        'payload', d.body::json
    ) as record
from webhook_deliveries d
join webhooks w using (webhook_id);

drop view webhook_budgets;
drop table webhook_usage;
alter table webhooks drop column over_budget_until, drop column challenge, drop column verified_at;
alter table api_keys drop column webhook_messages_day;
alter table tiers drop column unfiltered_webhooks, drop column webhook_messages_day;
