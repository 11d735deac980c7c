drop schema analytics cascade;
drop view webhook_records;
drop view wallet_coverage;
drop view stats_records;
drop view signal_records;
drop view ranked_markets;
drop view price_records;
drop view pipeline_status;
drop view market_records;
drop view ledger_changes;
drop view delivery_records;
drop view coverage_held;
drop view coverage_gap_records;
drop view chain_holes;
drop view book_records;
DROP TABLE webhook_deliveries;
DROP TABLE credit_usage;
DROP TABLE credit_leases;
DROP TABLE webhooks;
DROP TABLE wallets_watched;
DROP TABLE wallets_followed;
DROP TABLE tokens;
DROP TABLE market_status_changes;
DROP TABLE api_keys;
DROP TABLE webhook_head;
DROP TABLE wallet_totals;
DROP TABLE wallet_positions;
DROP TABLE wallet_hours;
DROP TABLE wallet_fills;
DROP TABLE wallet_days;
DROP TABLE wallet_activity;
DROP TABLE trades;
DROP TABLE tiers;
DROP TABLE tick_sizes;
DROP TABLE taxonomy_counts;
DROP TABLE stream_head;
DROP TABLE stream_events;
DROP TABLE stage_clocks;
DROP TABLE signals;
DROP TABLE settlements;
DROP TABLE settings;
DROP TABLE registrations;
DROP TABLE quotes;
DROP TABLE quarantine;
DROP TABLE quality_suites;
DROP TABLE quality_results;
DROP TABLE quality_checks;
DROP TABLE positions_head;
DROP TABLE positions_due;
DROP TABLE position_changes;
DROP TABLE markets;
DROP TABLE market_weeks;
DROP TABLE market_stats_24h;
DROP TABLE market_rankings;
DROP TABLE market_activity;
DROP TABLE live_prices;
DROP TABLE live_books;
DROP TABLE ledger_entries;
DROP TABLE leaderboards;
DROP TABLE feed_stats;
DROP TABLE feed_leases;
DROP TABLE exports;
DROP TABLE events;
DROP TABLE data_incidents;
DROP TABLE coverage_market_days;
DROP TABLE coverage_gaps;
DROP TABLE coverage_days;
DROP TABLE chain_tokens;
DROP TABLE chain_ranges;
DROP TABLE chain_heads;
DROP TABLE chain_contracts;
DROP TABLE chain_checks;
DROP TABLE chain_blocks;
DROP TABLE candles_1m;
DROP TABLE candles_1h;
DROP TABLE book_packs;
DROP TABLE book_events;
DROP TABLE book_anchors;
DROP TABLE analysis_parameters;
DROP TABLE accounts;
drop function marked_positions(of_wallet bytea);
drop function positions_now(of_wallet bytea);
drop function rows_since(of_wallet bytea);
drop function onchain_record(
    tx_hash bytea, log_index integer, block_number bigint, block_hash bytea, market_id text, token_id text, outcome smallint,
    maker bytea, taker bytea, side smallint, price bigint, size bigint, value_usd bigint, fee_usd bigint, contract bytea,
    is_taker_order boolean, finalized boolean, ts timestamptz
);
drop aggregate position_of(shares bigint, usd numeric, opening numeric[]);
drop function position_step(so_far numeric[], shares bigint, usd numeric, opening numeric[]);
drop function gap_span(from_ts timestamptz, to_ts timestamptz);
drop function coverage_gap(
    id text, kind text, market_id text, from_ts timestamptz, to_ts timestamptz, cause text, status text, filled_at timestamptz, filled_by text,
    added bigint, fault text, from_block bigint, to_block bigint
);
drop function coverage_record(
    kind text, status text, held tstzmultirange, missing tstzmultirange, open bigint, fillable bigint, lost bigint, filled bigint, reconciled_to date
);
drop function signal_record(
    signal_id bigint, type text, market_id text, outcome smallint, value double precision, threshold double precision,
    score double precision, direction smallint, window_s integer, detail jsonb, ts timestamptz
);
drop function sentiment(price_change_pct double precision);
drop function volume_trend(spike_ratio double precision);
drop function spike_ratio(value_1h bigint, value_24h bigint);
drop function market_price(bid bigint, ask bigint, mid bigint, last bigint);
drop function extended(record json, more json);
drop function as_unix(ts timestamptz);
drop function from_us(us bigint);
drop function as_us(ts timestamptz);
drop function as_ms(ts timestamptz);
drop function as_number(micro bigint);
drop function return_credits(of_key integer, in_month timestamptz, of_lease bigint, known_step bigint, spent bigint);
drop function lease_credits(
    of_key integer, in_month timestamptz, of_lease bigint, known_granted bigint, known_step bigint, wanted bigint,
    out now_granted bigint, out now_step bigint, out month_used bigint, out month_left bigint
);
drop function hourly_leans(of_market integer, of_outcome smallint, since timestamptz);
drop function newest_leans(of_market integer, of_outcome smallint, since timestamptz, until timestamptz);
drop function lean(bids double precision, asks double precision);
drop function best_five(sizes bigint[]);
drop function spread_over(of_market integer, of_outcome smallint, since timestamptz, until timestamptz);
drop function earliest_price(of_market integer, of_outcome smallint, since timestamptz, until timestamptz);
drop function settled_by(token text, traded_at timestamptz, tx bytea, traded bigint);
drop function empty_candles();
drop function keep_candles();
drop function note_insert();
