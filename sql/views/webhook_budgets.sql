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
