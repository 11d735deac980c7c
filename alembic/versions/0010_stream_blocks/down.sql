create table stream_events (
    seq bigint not null,
    ts timestamp with time zone default now() not null,
    type text not null,
    market_id text,
    wallet bytea,
    message text not null
);
select create_hypertable('stream_events', by_range('seq', 1000000::bigint), create_default_indexes => false);
create unique index stream_events_seq_idx on stream_events (seq);
comment on column stream_events.seq is 'Gap-free, in commit order';
comment on column stream_events.message is 'The JSON text as subscribers get it, seq included';
