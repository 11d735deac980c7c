-- Webhooks as the API shows them. The secret is shown when it is made, and never again.
create view webhook_records as
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
