-- Rows that the service cannot do without.

insert into tiers (tier, credits_month, credits_burst, max_keys, max_webhooks, max_connections, webhook_messages_day, unfiltered_webhooks) values
    ('free', 5000, 5, 1, 5, 5, 10000, false),
    ('pro', 100000, 25, 3, 2500, 50, 1000000, false),
    ('enterprise', null, null, null, null, null, null, true);

insert into stream_head default values;

insert into positions_head default values;

insert into webhook_head default values;

insert into stage_clocks (stage, warn_after_s, fail_after_s) values
    ('discovery', 900, 1800),
    ('ingestion', 15, 60),
    ('analysis', 180, 600),
    ('aggregates', 180, 600);

-- Runs where the exchange is configured only; what is off is not counted against the whole.
insert into stage_clocks (stage, warn_after_s, fail_after_s, detail) values
    ('discovery_kalshi', 900, 1800, '{"off": "Kalshi is not configured: add kalshi to PRESAGE_EXCHANGES"}'),
    ('ingestion_kalshi', 15, 60, '{"off": "Kalshi is not recorded"}');

-- Runs where an RPC of the chain is configured only.
insert into stage_clocks (stage, warn_after_s, fail_after_s, detail) values
    ('settlement', 30, 120, '{"off": "no RPC is configured: set PRESAGE_CHAIN_RPC_URLS"}');

-- Runs while a webhook is enabled only.
insert into stage_clocks (stage, warn_after_s, fail_after_s, detail) values
    ('delivery', 30, 120, '{"off": "no webhook is enabled: POST /v1/webhooks makes one"}');

-- Signs the cursors that clients hand back. Two version 4 UUIDs are 244 bits from the system's generator.
insert into settings (name, value)
values ('cursor_secret', to_jsonb(encode(sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')), 'hex')));
