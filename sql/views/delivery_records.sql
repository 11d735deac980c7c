-- Deliveries of webhooks as the API shows them.
create view delivery_records as
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
