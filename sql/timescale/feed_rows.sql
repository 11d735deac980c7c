-- A row of live state, as the feed sends it (`orchestration/ingest/storage/records.py`): a snapshot, a quote, a price or a book. Fields
-- that one lacks are null.
create type feed_row as (
    market_key int, outcome smallint, ts timestamptz, seq bigint, event_id bigint, tick_size bigint,
    bid bigint, ask bigint, mid bigint, bid_size bigint, ask_size bigint, last bigint, last_ts timestamptz,
    bid_prices int[], bid_sizes bigint[], ask_prices int[], ask_sizes bigint[], hash bytea
);
