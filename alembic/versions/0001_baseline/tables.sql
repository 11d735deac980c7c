create function as_number(micro bigint) returns double precision
language sql immutable strict parallel safe
return micro / 1000000.0::double precision;

create function as_ms(ts timestamptz) returns bigint
language sql stable strict parallel safe
return floor(extract(epoch from ts) * 1000)::bigint;

create function as_us(ts timestamptz) returns bigint
language sql stable strict parallel safe
return (extract(epoch from ts) * 1000000)::bigint;

create function from_us(us bigint) returns timestamptz
language sql immutable strict parallel safe
return timestamptz '1970-01-01 00:00:00+00' + us * interval '1 microsecond';

create function as_unix(ts timestamptz) returns bigint
language sql stable strict parallel safe
return floor(extract(epoch from ts))::bigint;

create function extended(record json, more json) returns text
language sql immutable strict parallel safe
return left(record::text, -1) || ',' || substr(more::text, 2);

create function market_price(bid bigint, ask bigint, mid bigint, last bigint) returns bigint
language sql immutable parallel safe
return case when mid is null or ask - bid > 100000 then last else mid end;

create function spike_ratio(value_1h bigint, value_24h bigint) returns double precision
language sql immutable parallel safe
return value_1h * 24.0::double precision / nullif(value_24h, 0);

create function volume_trend(spike_ratio double precision) returns text
language sql immutable parallel safe
return case when spike_ratio > 1.25 then 'up' when spike_ratio < 0.75 then 'down' else 'flat' end;

create function sentiment(price_change_pct double precision) returns text
language sql immutable parallel safe
return case when price_change_pct > 5 then 'bullish' when price_change_pct < -5 then 'bearish' else 'neutral' end;

create function signal_record(
    signal_id bigint, type text, market_id text, outcome smallint, value double precision, threshold double precision,
    score double precision, direction smallint, window_s integer, detail jsonb, ts timestamptz
) returns json
language sql stable parallel safe
return (
    select row_to_json(r)
    from (
        select
            signal_id::text as id, type, market_id, outcome, value, threshold, score,
            case direction when 1 then 'up' when -1 then 'down' end as direction, window_s, detail, as_ms(ts) as ts
    ) as r
);

CREATE TABLE accounts (
	account_id BIGINT GENERATED ALWAYS AS IDENTITY,
	email TEXT NOT NULL,
	app_name TEXT NOT NULL,
	use_case TEXT,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT accounts_pkey PRIMARY KEY (account_id),
	CONSTRAINT accounts_email_key UNIQUE (email)
);

COMMENT ON COLUMN accounts.email IS 'Normalised';

CREATE TABLE analysis_parameters (
	since TIMESTAMP WITH TIME ZONE NOT NULL,
	definitions INTEGER NOT NULL,
	parameters JSONB NOT NULL,
	CONSTRAINT analysis_parameters_pkey PRIMARY KEY (since)
);

COMMENT ON TABLE analysis_parameters IS 'A row whenever a parameter of analysis changed, so that a past day is computed with what was in force';

COMMENT ON COLUMN analysis_parameters.since IS 'The first minute that was analysed with them';

COMMENT ON COLUMN analysis_parameters.definitions IS 'Edition of the formulas in orchestration/analytics';

CREATE TABLE book_anchors (
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	seq BIGINT NOT NULL,
	bid_prices INTEGER[] NOT NULL,
	bid_sizes BIGINT[] NOT NULL,
	ask_prices INTEGER[] NOT NULL,
	ask_sizes BIGINT[] NOT NULL
);

select create_hypertable('book_anchors', by_range('ts', interval '1 day'), create_default_indexes => false);

CREATE UNIQUE INDEX book_anchors_market_idx ON book_anchors (market_key, outcome, ts desc, seq desc);

CREATE INDEX book_anchors_ts_idx ON book_anchors (ts desc);

COMMENT ON TABLE book_anchors IS 'Verified live books as they stood; between two of them lie the events of some minutes';

COMMENT ON COLUMN book_anchors.ts IS 'The exchange''s instant of the last event that is in it';

COMMENT ON COLUMN book_anchors.seq IS 'Of that event';

COMMENT ON COLUMN book_anchors.bid_prices IS 'Best first';

CREATE TABLE book_events (
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	event_id BIGINT NOT NULL,
	seq BIGINT NOT NULL,
	side SMALLINT,
	price INTEGER,
	size BIGINT,
	bid_prices INTEGER[],
	bid_sizes BIGINT[],
	ask_prices INTEGER[],
	ask_sizes BIGINT[],
	hash BYTEA
);

select create_hypertable('book_events', by_range('ts', interval '1 day'), create_default_indexes => false);

CREATE UNIQUE INDEX book_events_market_idx ON book_events (market_key, outcome, ts, event_id);

CREATE INDEX book_events_snapshots_idx ON book_events (market_key, outcome, ts desc) WHERE side is null;

CREATE INDEX book_events_ts_idx ON book_events USING brin (ts) WITH (autosummarize = on);

COMMENT ON COLUMN book_events.ts IS 'The exchange''s instant';

COMMENT ON COLUMN book_events.event_id IS 'Digest of what changed';

COMMENT ON COLUMN book_events.seq IS 'The order in which changes of one token are applied';

COMMENT ON COLUMN book_events.side IS 'A level change: 1 bids, -1 asks; null in a snapshot';

COMMENT ON COLUMN book_events.size IS 'The level''s new total; 0 removes it';

COMMENT ON COLUMN book_events.bid_prices IS 'A snapshot: both sides, best first';

COMMENT ON COLUMN book_events.hash IS 'The exchange''s digest of the book after the change';

CREATE TABLE book_packs (
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	until_ts TIMESTAMP WITH TIME ZONE NOT NULL,
	whole_from TIMESTAMP WITH TIME ZONE,
	events INTEGER NOT NULL,
	data BYTEA NOT NULL
);

select create_hypertable('book_packs', by_range('ts', interval '1 day'), create_default_indexes => false);

CREATE UNIQUE INDEX book_packs_market_idx ON book_packs (market_key, outcome, ts desc);

COMMENT ON TABLE book_packs IS 'Book events of past days, on the Apache licence: an event stands either here or in book_events';

COMMENT ON COLUMN book_packs.ts IS 'Of the first event in it';

COMMENT ON COLUMN book_packs.until_ts IS 'Of the last event in it';

COMMENT ON COLUMN book_packs.whole_from IS 'From when on its books are whole; null: never';

COMMENT ON COLUMN book_packs.data IS 'See sql/packs.py';

CREATE TABLE chain_blocks (
	number BIGINT NOT NULL,
	hash BYTEA NOT NULL,
	parent BYTEA,
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	logs INTEGER NOT NULL,
	CONSTRAINT chain_blocks_pkey PRIMARY KEY (number)
);

CREATE INDEX chain_blocks_ts_idx ON chain_blocks USING brin (ts);

COMMENT ON TABLE chain_blocks IS 'Blocks indexed: all that were followed, and those with logs where ranges were filled in. A block that stands here has all of its rows, as both are written in one transaction';

COMMENT ON COLUMN chain_blocks.parent IS 'Null: filled in from logs alone, far below the finalized head';

COMMENT ON COLUMN chain_blocks.logs IS 'Of our contracts: what a later re-check is held against';

CREATE TABLE chain_checks (
	from_block BIGINT NOT NULL,
	to_block BIGINT NOT NULL,
	checked_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT chain_checks_pkey PRIMARY KEY (from_block)
);

COMMENT ON TABLE chain_checks IS 'What has been counted again after it was final; neighbours are joined';

COMMENT ON COLUMN chain_checks.to_block IS 'Included';

CREATE TABLE chain_contracts (
	contract_key SMALLINT GENERATED ALWAYS AS IDENTITY,
	address BYTEA NOT NULL,
	name TEXT NOT NULL,
	CONSTRAINT chain_contracts_pkey PRIMARY KEY (contract_key),
	CONSTRAINT chain_contracts_address_key UNIQUE (address)
);

COMMENT ON TABLE chain_contracts IS 'Contracts whose logs are stored, so that a row names one in two bytes';

COMMENT ON COLUMN chain_contracts.name IS 'As in upstream/chain/contracts.py';

CREATE TABLE chain_heads (
	feed TEXT NOT NULL,
	head BIGINT NOT NULL,
	finalized BIGINT NOT NULL,
	indexed BIGINT NOT NULL,
	trades BIGINT DEFAULT 0 NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	detail JSONB DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT chain_heads_pkey PRIMARY KEY (feed)
);

COMMENT ON COLUMN chain_heads.head IS 'The newest block that any endpoint told';

COMMENT ON COLUMN chain_heads.finalized IS 'Rows above it are provisional';

COMMENT ON COLUMN chain_heads.indexed IS 'Followed up to here without a hole';

COMMENT ON COLUMN chain_heads.trades IS 'Counted fills of all that was ever indexed, those that retention has taken included';

CREATE TABLE chain_ranges (
	from_block BIGINT NOT NULL,
	to_block BIGINT NOT NULL,
	logs BIGINT NOT NULL,
	indexed_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT chain_ranges_pkey PRIMARY KEY (from_block)
);

COMMENT ON TABLE chain_ranges IS 'What has been indexed; neighbours are joined';

COMMENT ON COLUMN chain_ranges.to_block IS 'Included';

CREATE TABLE chain_tokens (
	token_key INTEGER GENERATED ALWAYS AS IDENTITY,
	token_id TEXT NOT NULL,
	CONSTRAINT chain_tokens_pkey PRIMARY KEY (token_key),
	CONSTRAINT chain_tokens_token_id_key UNIQUE (token_id)
);

COMMENT ON TABLE chain_tokens IS 'Every token that a log named, whether or not the catalogue knows it yet; markets by joining tokens';

COMMENT ON COLUMN chain_tokens.token_id IS 'uint256 in decimal, as in tokens';

CREATE TABLE coverage_days (
	day DATE NOT NULL,
	kind TEXT NOT NULL,
	listed BIGINT NOT NULL,
	held BIGINT NOT NULL,
	added BIGINT NOT NULL,
	unlisted BIGINT NOT NULL,
	unknown BIGINT NOT NULL,
	agrees BOOLEAN NOT NULL,
	checked_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	detail JSONB DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT coverage_days_pkey PRIMARY KEY (day, kind)
);

COMMENT ON TABLE coverage_days IS 'One row a day and kind that was reconciled with its source; done again, the newest word counts';

COMMENT ON COLUMN coverage_days.day IS 'UTC';

COMMENT ON COLUMN coverage_days.kind IS 'trades or settlements';

COMMENT ON COLUMN coverage_days.listed IS 'Trades that the exchange lists, or logs that the chain has';

COMMENT ON COLUMN coverage_days.held IS 'How many of those are held by now';

COMMENT ON COLUMN coverage_days.added IS 'How many of those were missing, and were filled in';

COMMENT ON COLUMN coverage_days.unlisted IS 'Held, though the source does not tell of it';

COMMENT ON COLUMN coverage_days.unknown IS 'Listed, but of no market that the catalogue knows';

COMMENT ON COLUMN coverage_days.agrees IS 'Nothing is missing, nothing unlisted, nothing unknown';

CREATE TABLE coverage_gaps (
	gap_id BIGINT GENERATED ALWAYS AS IDENTITY,
	kind TEXT NOT NULL,
	market_key INTEGER,
	from_ts TIMESTAMP WITH TIME ZONE NOT NULL,
	to_ts TIMESTAMP WITH TIME ZONE,
	cause TEXT NOT NULL,
	run_id TEXT,
	filled_at TIMESTAMP WITH TIME ZONE,
	filled_by TEXT,
	detail JSONB DEFAULT '{}'::jsonb NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT coverage_gaps_pkey PRIMARY KEY (gap_id)
);

CREATE INDEX coverage_gaps_filled_idx ON coverage_gaps (kind) WHERE filled_at is not null;

CREATE INDEX coverage_gaps_from_ts_idx ON coverage_gaps (from_ts desc, gap_id desc);

CREATE INDEX coverage_gaps_market_idx ON coverage_gaps (market_key, from_ts desc);

CREATE INDEX coverage_gaps_missing_idx ON coverage_gaps (kind, from_ts, to_ts) WHERE filled_at is null;

COMMENT ON COLUMN coverage_gaps.kind IS 'trades or books';

COMMENT ON COLUMN coverage_gaps.market_key IS 'Null: every market of the feed';

COMMENT ON COLUMN coverage_gaps.to_ts IS 'Null: still open';

CREATE TABLE coverage_market_days (
	day DATE NOT NULL,
	market_key INTEGER NOT NULL,
	listed INTEGER NOT NULL,
	held INTEGER NOT NULL,
	added INTEGER NOT NULL,
	unlisted INTEGER NOT NULL,
	CONSTRAINT coverage_market_days_pkey PRIMARY KEY (day, market_key)
);

COMMENT ON TABLE coverage_market_days IS 'The same of the trades of each market that had any';

COMMENT ON COLUMN coverage_market_days.day IS 'UTC';

COMMENT ON COLUMN coverage_market_days.listed IS 'Trades that the exchange lists';

COMMENT ON COLUMN coverage_market_days.held IS 'How many of those are held by now';

COMMENT ON COLUMN coverage_market_days.added IS 'How many of those were missing, and were filled in';

COMMENT ON COLUMN coverage_market_days.unlisted IS 'Held, though the exchange does not list it';

CREATE TABLE data_incidents (
	incident_id BIGINT GENERATED ALWAYS AS IDENTITY,
	kind TEXT NOT NULL,
	subject TEXT NOT NULL,
	first_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	last_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	times INTEGER DEFAULT 1 NOT NULL,
	mended_at TIMESTAMP WITH TIME ZONE,
	detail JSONB DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT data_incidents_pkey PRIMARY KEY (incident_id),
	CONSTRAINT data_incidents_kind_subject_key UNIQUE (kind, subject)
);

CREATE INDEX data_incidents_last_idx ON data_incidents (last_at desc);

COMMENT ON TABLE data_incidents IS 'Sources that contradicted each other or themselves, and what became of it';

COMMENT ON COLUMN data_incidents.kind IS 'logs_missing, logs_withheld, deep_reorg, finalized_mismatch or resolution_disagrees';

COMMENT ON COLUMN data_incidents.subject IS 'Block range or market id';

COMMENT ON COLUMN data_incidents.mended_at IS 'Null: still so';

CREATE TABLE events (
	event_id TEXT NOT NULL,
	slug TEXT,
	title TEXT,
	category TEXT,
	series TEXT,
	tags TEXT[] DEFAULT '{}' NOT NULL,
	start_time TIMESTAMP WITH TIME ZONE,
	end_time TIMESTAMP WITH TIME ZONE,
	closed BOOLEAN DEFAULT false NOT NULL,
	neg_risk BOOLEAN DEFAULT false NOT NULL,
	image TEXT,
	updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT events_pkey PRIMARY KEY (event_id)
);

COMMENT ON COLUMN events.event_id IS 'The exchange''s id of the event';

CREATE TABLE exports (
	topic TEXT NOT NULL,
	day DATE NOT NULL,
	part SMALLINT NOT NULL,
	format TEXT NOT NULL,
	file TEXT NOT NULL,
	rows BIGINT NOT NULL,
	bytes BIGINT NOT NULL,
	sha256 BYTEA NOT NULL,
	complete BOOLEAN NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT exports_pkey PRIMARY KEY (topic, day, part, format),
	CONSTRAINT exports_format_check CHECK (format in ('parquet', 'csv')),
	CONSTRAINT exports_file_key UNIQUE (file)
);

COMMENT ON TABLE exports IS 'One row a file that is there whole';

COMMENT ON COLUMN exports.day IS 'UTC';

COMMENT ON COLUMN exports.part IS 'Of the day, from 0';

COMMENT ON COLUMN exports.format IS 'parquet or csv';

COMMENT ON COLUMN exports.file IS 'Below the folder of exports';

COMMENT ON COLUMN exports.complete IS 'Written after the part was over';

CREATE TABLE feed_leases (
	run_id TEXT NOT NULL,
	feed TEXT NOT NULL,
	role TEXT NOT NULL,
	ready BOOLEAN DEFAULT false NOT NULL,
	started_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	beat_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	window_ends_at TIMESTAMP WITH TIME ZONE NOT NULL,
	pid INTEGER,
	host TEXT,
	detail JSONB DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT feed_leases_pkey PRIMARY KEY (run_id)
);

CREATE INDEX feed_leases_feed_idx ON feed_leases (feed);

COMMENT ON COLUMN feed_leases.role IS 'standby, leader or gone';

COMMENT ON COLUMN feed_leases.ready IS 'Holds every book, could lead at once';

COMMENT ON COLUMN feed_leases.beat_at IS 'Touched each second: the only sign of life that counts';

CREATE TABLE feed_stats (
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	feed TEXT NOT NULL,
	run_id TEXT NOT NULL,
	messages BIGINT NOT NULL,
	rows BIGINT NOT NULL,
	lag_counts INTEGER[] NOT NULL,
	lag_p50_ms INTEGER,
	lag_p99_ms INTEGER,
	lag_max_ms INTEGER,
	reconnects INTEGER DEFAULT 0 NOT NULL,
	reanchored INTEGER DEFAULT 0 NOT NULL
);

select create_hypertable('feed_stats', by_range('ts', interval '7 days'), create_default_indexes => false);

CREATE INDEX feed_stats_ts_idx ON feed_stats (feed, ts desc);

COMMENT ON COLUMN feed_stats.lag_counts IS 'Histogram of exchange instant → commit; edges in orchestration/live/lag.py';

COMMENT ON COLUMN feed_stats.reanchored IS 'Books that disagreed and were fetched again';

CREATE TABLE leaderboards (
	span TEXT NOT NULL,
	by TEXT NOT NULL,
	rank INTEGER NOT NULL,
	wallet BYTEA NOT NULL,
	volume_usd BIGINT NOT NULL,
	trades BIGINT NOT NULL,
	markets INTEGER NOT NULL,
	pnl_usd BIGINT,
	window_start TIMESTAMP WITH TIME ZONE,
	computed_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT leaderboards_pkey PRIMARY KEY (span, by, rank)
);

COMMENT ON COLUMN leaderboards.span IS '1d, 7d, 30d or all';

COMMENT ON COLUMN leaderboards.by IS 'volume or pnl';

COMMENT ON COLUMN leaderboards.window_start IS 'Null: from the beginning';

CREATE TABLE ledger_entries (
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	block_number BIGINT NOT NULL,
	log_index INTEGER NOT NULL,
	entry SMALLINT NOT NULL,
	kind TEXT NOT NULL,
	wallet BYTEA,
	counterparty BYTEA,
	condition_id BYTEA,
	token_key INTEGER,
	amount BIGINT NOT NULL,
	tx_hash BYTEA NOT NULL,
	contract_key SMALLINT NOT NULL,
	detail JSONB DEFAULT '{}'::jsonb NOT NULL
);

select create_hypertable('ledger_entries', by_range('ts', interval '1 day'), create_default_indexes => false);

CREATE UNIQUE INDEX ledger_entries_block_idx ON ledger_entries (block_number, log_index, entry, ts);

CREATE INDEX ledger_entries_condition_idx ON ledger_entries (condition_id, ts desc);

CREATE INDEX ledger_entries_wallet_idx ON ledger_entries (wallet, ts desc);

COMMENT ON COLUMN ledger_entries.entry IS 'Within the log: a batch transfer is several';

COMMENT ON COLUMN ledger_entries.kind IS 'split, merge, convert, redeem, transfer or resolution';

COMMENT ON COLUMN ledger_entries.wallet IS 'Whose position changed; null in a resolution, and where the chain does not show it';

COMMENT ON COLUMN ledger_entries.counterparty IS 'Of a transfer: the other side';

COMMENT ON COLUMN ledger_entries.condition_id IS 'The market; of a conversion the exchange''s neg-risk market id';

COMMENT ON COLUMN ledger_entries.token_key IS 'Of a transfer';

COMMENT ON COLUMN ledger_entries.amount IS 'Shares, below zero of a transfer''s sender; of a redemption the USD paid out';

COMMENT ON COLUMN ledger_entries.detail IS 'tokens: [[token id, change], …]; index sets, numerators, the adapter it went through';

CREATE TABLE live_books (
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	bid_prices INTEGER[] NOT NULL,
	bid_sizes BIGINT[] NOT NULL,
	ask_prices INTEGER[] NOT NULL,
	ask_sizes BIGINT[] NOT NULL,
	tick_size BIGINT,
	hash BYTEA,
	seq BIGINT NOT NULL,
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	verified BOOLEAN NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT live_books_pkey PRIMARY KEY (market_key, outcome)
);

alter table live_books set (fillfactor = 50);

COMMENT ON COLUMN live_books.bid_prices IS 'Best first';

COMMENT ON COLUMN live_books.verified IS 'Agrees with the exchange''s own best prices; false: not served';

CREATE TABLE live_prices (
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	bid BIGINT,
	ask BIGINT,
	mid BIGINT,
	bid_size BIGINT,
	ask_size BIGINT,
	last BIGINT,
	last_ts TIMESTAMP WITH TIME ZONE,
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT live_prices_pkey PRIMARY KEY (market_key, outcome)
);

alter table live_prices set (fillfactor = 50);

COMMENT ON COLUMN live_prices.ts IS 'When the exchange last said so';

CREATE TABLE market_activity (
	market_key SERIAL NOT NULL,
	value_1h BIGINT NOT NULL,
	trades_1h BIGINT NOT NULL,
	value_24h BIGINT NOT NULL,
	trades_24h BIGINT NOT NULL,
	value_7d BIGINT NOT NULL,
	trades_7d BIGINT NOT NULL,
	spike_ratio DOUBLE PRECISION,
	price_now BIGINT,
	price_baseline BIGINT,
	price_move BIGINT,
	computed_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT market_activity_pkey PRIMARY KEY (market_key)
);

alter table market_activity set (fillfactor = 70);

CREATE INDEX market_activity_price_move_idx ON market_activity (abs(price_move) desc nulls last);

CREATE INDEX market_activity_spike_ratio_idx ON market_activity (spike_ratio desc nulls last, value_1h desc);

CREATE INDEX market_activity_trades_1h_idx ON market_activity (trades_1h desc, market_key desc);

CREATE INDEX market_activity_trades_24h_idx ON market_activity (trades_24h desc, market_key desc);

CREATE INDEX market_activity_trades_7d_idx ON market_activity (trades_7d desc, market_key desc);

CREATE INDEX market_activity_value_1h_idx ON market_activity (value_1h desc, market_key desc);

CREATE INDEX market_activity_value_24h_idx ON market_activity (value_24h desc, market_key desc);

CREATE INDEX market_activity_value_7d_idx ON market_activity (value_7d desc, market_key desc);

COMMENT ON TABLE market_activity IS 'Markets with trades in seven days or prices in the last hour: what rankings are read from';

COMMENT ON COLUMN market_activity.value_1h IS 'USD traded in the last hour, over all outcomes';

COMMENT ON COLUMN market_activity.spike_ratio IS 'The last hour''s USD over the 24 hours'' hourly mean';

COMMENT ON COLUMN market_activity.price_now IS 'Of the first outcome';

COMMENT ON COLUMN market_activity.price_baseline IS 'The earliest sample of the last 65 minutes';

COMMENT ON COLUMN market_activity.price_move IS 'From the baseline to now';

COMMENT ON COLUMN market_activity.computed_at IS 'When a figure last changed';

CREATE TABLE market_rankings (
	generation BIGINT NOT NULL,
	rank INTEGER NOT NULL,
	market_key INTEGER NOT NULL,
	CONSTRAINT market_rankings_pkey PRIMARY KEY (generation, rank)
);

CREATE UNIQUE INDEX market_rankings_market_idx ON market_rankings (generation, market_key);

COMMENT ON COLUMN market_rankings.generation IS 'A cursor walks one generation, so that ranks cannot move under it';

CREATE TABLE market_stats_24h (
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	open BIGINT,
	high BIGINT,
	low BIGINT,
	close BIGINT,
	volume BIGINT NOT NULL,
	value_usd BIGINT NOT NULL,
	trades BIGINT NOT NULL,
	window_start TIMESTAMP WITH TIME ZONE NOT NULL,
	window_end TIMESTAMP WITH TIME ZONE NOT NULL,
	computed_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT market_stats_24h_pkey PRIMARY KEY (market_key, outcome)
);

CREATE INDEX market_stats_24h_value_idx ON market_stats_24h (value_usd desc);

CREATE TABLE market_weeks (
	market_key INTEGER NOT NULL,
	value_usd BIGINT NOT NULL,
	trades BIGINT NOT NULL,
	until TIMESTAMP WITH TIME ZONE NOT NULL,
	computed_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT market_weeks_pkey PRIMARY KEY (market_key)
);

COMMENT ON TABLE market_weeks IS 'The last seven days'' older hours, added up every few minutes, so that it need not be done each minute';

COMMENT ON COLUMN market_weeks.until IS 'The hours before this one; the same in every row';

CREATE TABLE markets (
	market_key INTEGER GENERATED ALWAYS AS IDENTITY,
	market_id TEXT NOT NULL,
	gamma_id TEXT,
	slug TEXT,
	question TEXT NOT NULL,
	description TEXT,
	status TEXT NOT NULL,
	exchange TEXT DEFAULT 'polymarket' NOT NULL,
	version TEXT DEFAULT 'v1' NOT NULL,
	event_id TEXT,
	event_title TEXT,
	category TEXT,
	series TEXT,
	tags TEXT[] DEFAULT '{}' NOT NULL,
	outcomes TEXT[] NOT NULL,
	token_ids TEXT[] NOT NULL,
	outcome_prices BIGINT[] DEFAULT '{}' NOT NULL,
	start_time TIMESTAMP WITH TIME ZONE,
	end_time TIMESTAMP WITH TIME ZONE,
	created_at TIMESTAMP WITH TIME ZONE,
	closed_at TIMESTAMP WITH TIME ZONE,
	resolved_at TIMESTAMP WITH TIME ZONE,
	winning_outcome SMALLINT,
	volume_usd BIGINT,
	volume_24h_usd BIGINT,
	liquidity_usd BIGINT,
	neg_risk BOOLEAN DEFAULT false NOT NULL,
	order_book BOOLEAN DEFAULT true NOT NULL,
	tick_size BIGINT,
	image TEXT,
	url TEXT,
	source TEXT DEFAULT 'exchange' NOT NULL,
	raw JSONB,
	first_seen_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT markets_pkey PRIMARY KEY (market_key),
	CONSTRAINT markets_status_check CHECK (status in ('ACTIVE', 'CLOSED', 'RESOLVED')),
	CONSTRAINT markets_market_id_key UNIQUE (market_id),
	CONSTRAINT markets_gamma_id_key UNIQUE (gamma_id)
);

CREATE INDEX markets_category_created_at_idx ON markets (category, status, created_at desc nulls last);

CREATE INDEX markets_category_end_time_idx ON markets (category, status, end_time);

CREATE INDEX markets_created_at_idx ON markets (created_at desc);

CREATE INDEX markets_end_time_idx ON markets (status, end_time);

CREATE INDEX markets_event_id_idx ON markets (event_id);

CREATE INDEX markets_series_idx ON markets (series);

CREATE INDEX markets_slug_idx ON markets (slug);

CREATE INDEX markets_tags_idx ON markets USING gin (tags);

CREATE INDEX markets_title_idx ON markets USING gin (question gin_trgm_ops, slug gin_trgm_ops, event_title gin_trgm_ops);

COMMENT ON COLUMN markets.market_key IS 'Our own short key';

COMMENT ON COLUMN markets.market_id IS 'Condition id: 0x and 64 hex digits';

COMMENT ON COLUMN markets.gamma_id IS 'The exchange''s numeric id';

COMMENT ON COLUMN markets.version IS 'Protocol: v1 (CTF) or v2 (PositionManager)';

COMMENT ON COLUMN markets.outcome_prices IS 'Micro; the exchange''s';

COMMENT ON COLUMN markets.created_at IS 'When the exchange listed it';

COMMENT ON COLUMN markets.winning_outcome IS '0-based; null when unknown, or when the payout is shared';

COMMENT ON COLUMN markets.volume_24h_usd IS 'As the exchange counts it';

COMMENT ON COLUMN markets.order_book IS 'Traded on the order book';

COMMENT ON COLUMN markets.source IS 'exchange, tape or simulated';

COMMENT ON COLUMN markets.raw IS 'The exchange''s own object, as last seen';

COMMENT ON COLUMN markets.updated_at IS 'When a stored field last changed';

CREATE TABLE position_changes (
	wallet BYTEA NOT NULL,
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	block_number BIGINT NOT NULL,
	log_index INTEGER NOT NULL,
	entry SMALLINT NOT NULL,
	token_key INTEGER NOT NULL,
	kind TEXT NOT NULL,
	shares BIGINT NOT NULL,
	usd NUMERIC
);

select create_hypertable('position_changes', by_range('ts', interval '7 days'), create_default_indexes => false);

CREATE INDEX position_changes_block_idx ON position_changes (block_number, ts);

CREATE UNIQUE INDEX position_changes_wallet_idx ON position_changes (wallet, ts desc, block_number, log_index, entry, token_key);

COMMENT ON TABLE position_changes IS 'What the ledger''s entries did to each token that a wallet holds';

COMMENT ON COLUMN position_changes.entry IS 'Of the ledger''s log';

COMMENT ON COLUMN position_changes.kind IS 'split, merge, convert, redeem or transfer';

COMMENT ON COLUMN position_changes.shares IS 'Below 0: they went';

COMMENT ON COLUMN position_changes.usd IS 'Micro-USD paid or got for them; null in a transfer: moved without a price';

CREATE TABLE positions_due (
	due_id BIGINT GENERATED ALWAYS AS IDENTITY,
	wallet BYTEA NOT NULL,
	token_key INTEGER NOT NULL,
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT positions_due_pkey PRIMARY KEY (due_id)
);

CREATE INDEX positions_due_wallet_idx ON positions_due (wallet);

COMMENT ON TABLE positions_due IS 'Positions to be made anew from their first fill: something of their past came, or went, later. A pair may be there several times, so that who adds one waits for nobody';

COMMENT ON COLUMN positions_due.ts IS 'When it was that something changed';

CREATE TABLE positions_head (
	one BOOLEAN DEFAULT true NOT NULL,
	claimed BIGINT DEFAULT -1 NOT NULL,
	done BIGINT DEFAULT -1 NOT NULL,
	done_ts TIMESTAMP WITH TIME ZONE DEFAULT '1970-01-01 00:00:00+00' NOT NULL,
	base_block BIGINT DEFAULT -1 NOT NULL,
	base_ts TIMESTAMP WITH TIME ZONE DEFAULT '1970-01-01 00:00:00+00' NOT NULL,
	market_key INTEGER DEFAULT 0 NOT NULL,
	from_block BIGINT,
	from_ts TIMESTAMP WITH TIME ZONE,
	computed_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT positions_head_pkey PRIMARY KEY (one),
	CONSTRAINT positions_head_one_check CHECK (one)
);

alter table positions_head set (fillfactor = 10);

COMMENT ON TABLE positions_head IS 'One row: how far positions have come';

COMMENT ON COLUMN positions_head.claimed IS 'Whatever is written at or below this block from now on makes its positions due';

COMMENT ON COLUMN positions_head.done IS 'wallet_positions has all up to here';

COMMENT ON COLUMN positions_head.done_ts IS 'No row after it is earlier';

COMMENT ON COLUMN positions_head.base_block IS 'Rows up to here may be gone: they are kept no longer';

COMMENT ON COLUMN positions_head.base_ts IS 'No row after it is earlier';

COMMENT ON COLUMN positions_head.market_key IS 'The newest market met';

COMMENT ON COLUMN positions_head.from_block IS 'Where the rows that made positions began';

COMMENT ON COLUMN positions_head.computed_at IS 'When the last pass ended';

CREATE TABLE quality_checks (
	suite TEXT NOT NULL,
	name TEXT NOT NULL,
	stage TEXT NOT NULL,
	severity TEXT NOT NULL,
	ran_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	rows_checked BIGINT NOT NULL,
	rows_failed BIGINT NOT NULL,
	failed_at TIMESTAMP WITH TIME ZONE,
	counts_until TIMESTAMP WITH TIME ZONE,
	CONSTRAINT quality_checks_pkey PRIMARY KEY (suite, name)
);

COMMENT ON TABLE quality_checks IS 'The newest result of each check, which pipeline_status reads';

COMMENT ON COLUMN quality_checks.severity IS 'warn makes the stage late, fail makes it stale';

COMMENT ON COLUMN quality_checks.failed_at IS 'When it last failed';

COMMENT ON COLUMN quality_checks.counts_until IS 'Until then its last failure is held against the stage; while rows_failed is above 0, always';

CREATE TABLE quality_results (
	result_id BIGINT GENERATED ALWAYS AS IDENTITY,
	ran_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	suite TEXT NOT NULL,
	name TEXT NOT NULL,
	stage TEXT NOT NULL,
	severity TEXT NOT NULL,
	rows_checked BIGINT NOT NULL,
	rows_failed BIGINT NOT NULL,
	samples JSONB DEFAULT '[]'::jsonb NOT NULL,
	CONSTRAINT quality_results_pkey PRIMARY KEY (result_id)
);

CREATE INDEX quality_results_check_idx ON quality_results (suite, name, ran_at desc);

CREATE INDEX quality_results_failed_idx ON quality_results (ran_at desc) WHERE rows_failed > 0;

CREATE INDEX quality_results_ran_at_idx ON quality_results (ran_at);

COMMENT ON TABLE quality_results IS 'Each check of each pass that had rows to look at: those that held are kept for days, failures for months';

COMMENT ON COLUMN quality_results.rows_failed IS '0: it held';

COMMENT ON COLUMN quality_results.samples IS 'Some of the rows that failed';

CREATE TABLE quality_suites (
	suite TEXT NOT NULL,
	stage TEXT NOT NULL,
	until TIMESTAMP WITH TIME ZONE NOT NULL,
	after BIGINT,
	blocks INT8MULTIRANGE,
	ran_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	rows BIGINT NOT NULL,
	seconds DOUBLE PRECISION NOT NULL,
	CONSTRAINT quality_suites_pkey PRIMARY KEY (suite)
);

COMMENT ON TABLE quality_suites IS 'A row each suite: the next pass takes up where the last one ended';

COMMENT ON COLUMN quality_suites.suite IS 'The table that it is about';

COMMENT ON COLUMN quality_suites.until IS 'Rows up to here have been checked';

COMMENT ON COLUMN quality_suites.after IS 'The same, of rows that are numbered';

COMMENT ON COLUMN quality_suites.blocks IS 'The same, of blocks: also holes that are filled in later are noticed';

COMMENT ON COLUMN quality_suites.rows IS 'Of the last pass';

CREATE TABLE quarantine (
	quarantine_id BIGINT GENERATED ALWAYS AS IDENTITY,
	ts TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	source TEXT NOT NULL,
	reason TEXT NOT NULL,
	payload TEXT NOT NULL,
	CONSTRAINT quarantine_pkey PRIMARY KEY (quarantine_id)
);

CREATE INDEX quarantine_ts_idx ON quarantine (ts desc);

COMMENT ON COLUMN quarantine.source IS 'gamma, clob, market_socket, data_api or chain';

COMMENT ON COLUMN quarantine.payload IS 'As it came, cut at 64 KiB';

CREATE TABLE quotes (
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	bid BIGINT,
	ask BIGINT,
	mid BIGINT,
	bid_size BIGINT,
	ask_size BIGINT
);

select create_hypertable('quotes', by_range('ts', interval '1 day'), create_default_indexes => false);

CREATE UNIQUE INDEX quotes_market_idx ON quotes (market_key, outcome, ts);

CREATE INDEX quotes_ts_idx ON quotes USING brin (ts) WITH (autosummarize = on);

CREATE TABLE registrations (
	address TEXT NOT NULL,
	day TIMESTAMP WITH TIME ZONE NOT NULL,
	asked INTEGER NOT NULL,
	CONSTRAINT registrations_pkey PRIMARY KEY (address)
);

CREATE INDEX registrations_day_idx ON registrations (day);

COMMENT ON TABLE registrations IS 'Kept for the day, so that one address cannot make any number of keys';

COMMENT ON COLUMN registrations.address IS 'Where keys were asked for from: an IPv4 address, an IPv6 /64';

COMMENT ON COLUMN registrations.day IS 'Its first instant, UTC';

CREATE TABLE settings (
	name TEXT NOT NULL,
	value JSONB NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT settings_pkey PRIMARY KEY (name)
);

COMMENT ON TABLE settings IS 'What an administrator changes while running, and what the service keeps for itself: secrets, walk cursors';

CREATE TABLE settlements (
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	block_number BIGINT NOT NULL,
	log_index INTEGER NOT NULL,
	match_index INTEGER,
	tx_hash BYTEA NOT NULL,
	contract_key SMALLINT NOT NULL,
	token_key INTEGER NOT NULL,
	maker BYTEA NOT NULL,
	taker BYTEA NOT NULL,
	side SMALLINT NOT NULL,
	price BIGINT,
	size BIGINT NOT NULL,
	value_usd BIGINT NOT NULL,
	fee_usd BIGINT NOT NULL,
	is_taker_order BOOLEAN NOT NULL,
	counted BOOLEAN NOT NULL
);

select create_hypertable('settlements', by_range('ts', interval '1 day'), create_default_indexes => false);

CREATE UNIQUE INDEX settlements_block_idx ON settlements (block_number, log_index, ts);

CREATE INDEX settlements_token_idx ON settlements (token_key, ts desc);

CREATE INDEX settlements_ts_idx ON settlements (ts desc);

COMMENT ON COLUMN settlements.ts IS 'The block''s instant';

COMMENT ON COLUMN settlements.match_index IS 'Log index of the taker''s own row of the same match; null when there is none';

COMMENT ON COLUMN settlements.maker IS 'Owns the order that this row is about';

COMMENT ON COLUMN settlements.side IS 'The maker''s: 1 BUY, -1 SELL';

COMMENT ON COLUMN settlements.price IS 'Null: no shares, or an impossible price';

COMMENT ON COLUMN settlements.counted IS 'In volume: the taker''s row, or a maker''s of a match without one';

CREATE TABLE signals (
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	signal_id BIGINT NOT NULL,
	type TEXT NOT NULL,
	value DOUBLE PRECISION NOT NULL,
	threshold DOUBLE PRECISION NOT NULL,
	score DOUBLE PRECISION NOT NULL,
	direction SMALLINT,
	window_s INTEGER NOT NULL,
	detail JSONB DEFAULT '{}'::jsonb NOT NULL,
	found_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL
);

select create_hypertable('signals', by_range('ts', interval '1 day'), create_default_indexes => false);

CREATE UNIQUE INDEX signals_market_idx ON signals (market_key, ts desc, signal_id);

CREATE INDEX signals_score_idx ON signals (score desc, ts desc);

CREATE INDEX signals_ts_idx ON signals (ts desc);

CREATE INDEX signals_type_idx ON signals (type, ts desc);

COMMENT ON COLUMN signals.ts IS 'The end of the window that it was found in';

COMMENT ON COLUMN signals.signal_id IS 'Digest of type, market, outcome and instant: found twice, it is one';

COMMENT ON COLUMN signals.score IS 'value / threshold';

COMMENT ON COLUMN signals.direction IS '1 up, -1 down';

COMMENT ON COLUMN signals.detail IS 'The figures behind it';

CREATE TABLE stage_clocks (
	stage TEXT NOT NULL,
	last_data_at TIMESTAMP WITH TIME ZONE,
	beat_at TIMESTAMP WITH TIME ZONE,
	warn_after_s INTEGER NOT NULL,
	fail_after_s INTEGER NOT NULL,
	detail JSONB DEFAULT '{}'::jsonb NOT NULL,
	CONSTRAINT stage_clocks_pkey PRIMARY KEY (stage)
);

COMMENT ON TABLE stage_clocks IS 'Each stage touches its own clock; lateness is computed when read, so a stall turns red by itself';

COMMENT ON COLUMN stage_clocks.last_data_at IS 'The newest data that this stage has brought in';

COMMENT ON COLUMN stage_clocks.beat_at IS 'When the stage last looked, even if there was nothing';

CREATE TABLE stream_events (
	seq BIGINT NOT NULL,
	ts TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	type TEXT NOT NULL,
	market_id TEXT,
	wallet BYTEA,
	message TEXT NOT NULL
);

select create_hypertable('stream_events', by_range('seq', 1000000::bigint), create_default_indexes => false);

CREATE UNIQUE INDEX stream_events_seq_idx ON stream_events (seq);

COMMENT ON COLUMN stream_events.seq IS 'Gap-free, in commit order';

COMMENT ON COLUMN stream_events.message IS 'The JSON text as subscribers get it, seq included';

CREATE TABLE stream_head (
	one BOOLEAN DEFAULT true NOT NULL,
	last_seq BIGINT DEFAULT 0 NOT NULL,
	CONSTRAINT stream_head_pkey PRIMARY KEY (one),
	CONSTRAINT stream_head_one_check CHECK (one)
);

alter table stream_head set (fillfactor = 10);

COMMENT ON TABLE stream_head IS 'One row. A writer adds its count of events last in its transaction: its lock makes seq order commit order';

CREATE TABLE taxonomy_counts (
	kind TEXT NOT NULL,
	name TEXT NOT NULL,
	markets BIGINT NOT NULL,
	counted_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT taxonomy_counts_pkey PRIMARY KEY (kind, name)
);

CREATE INDEX taxonomy_counts_markets_idx ON taxonomy_counts (kind, markets desc, name);

COMMENT ON COLUMN taxonomy_counts.kind IS 'category, tag or series';

CREATE TABLE tick_sizes (
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	before BIGINT,
	tick_size BIGINT NOT NULL,
	CONSTRAINT tick_sizes_pkey PRIMARY KEY (market_key, outcome, ts)
);

COMMENT ON TABLE tick_sizes IS 'Each time that the exchange changed how fine an outcome''s prices are';

COMMENT ON COLUMN tick_sizes.before IS 'Null when the exchange did not say';

COMMENT ON COLUMN tick_sizes.tick_size IS 'From this instant on';

CREATE TABLE tiers (
	tier TEXT NOT NULL,
	credits_month BIGINT,
	credits_burst INTEGER,
	max_keys INTEGER,
	max_webhooks INTEGER,
	max_connections INTEGER,
	CONSTRAINT tiers_pkey PRIMARY KEY (tier)
);

COMMENT ON TABLE tiers IS 'Null: custom, set per key';

CREATE TABLE trades (
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	trade_id BIGINT NOT NULL,
	seq BIGINT NOT NULL,
	side SMALLINT NOT NULL,
	price BIGINT NOT NULL,
	size BIGINT NOT NULL,
	value_usd BIGINT NOT NULL,
	tx_hash BYTEA
);

select create_hypertable('trades', by_range('ts', interval '1 day'), create_default_indexes => false);

CREATE UNIQUE INDEX trades_market_idx ON trades (market_key, outcome, ts, trade_id);

CREATE INDEX trades_ts_idx ON trades (ts desc);

COMMENT ON COLUMN trades.trade_id IS 'Digest of what the trade is; the same from every source';

COMMENT ON COLUMN trades.seq IS 'Orders by time and, within an instant, by arrival';

COMMENT ON COLUMN trades.side IS 'The taker''s: 1 BUY, -1 SELL';

CREATE TABLE wallet_activity (
	wallet BYTEA NOT NULL,
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	block_number BIGINT NOT NULL,
	log_index INTEGER NOT NULL,
	is_taker BOOLEAN NOT NULL,
	match_index INTEGER,
	tx_hash BYTEA NOT NULL,
	contract_key SMALLINT NOT NULL,
	token_key INTEGER NOT NULL,
	counterparty BYTEA NOT NULL,
	side SMALLINT NOT NULL,
	price BIGINT,
	size BIGINT NOT NULL,
	value_usd BIGINT NOT NULL,
	fee_usd BIGINT NOT NULL
);

select create_hypertable('wallet_activity', by_range('ts', interval '7 days'), create_default_indexes => false);

CREATE INDEX wallet_activity_block_idx ON wallet_activity (block_number, ts);

CREATE UNIQUE INDEX wallet_activity_wallet_idx ON wallet_activity (wallet, ts desc, block_number, log_index, is_taker);

COMMENT ON TABLE wallet_activity IS 'What watched wallets did while they were watched; kept 90 days';

COMMENT ON COLUMN wallet_activity.counterparty IS 'The other side';

COMMENT ON COLUMN wallet_activity.side IS 'The wallet''s: 1 BUY, -1 SELL';

COMMENT ON COLUMN wallet_activity.price IS 'Null: no price could be matched';

CREATE TABLE wallet_days (
	day DATE NOT NULL,
	wallet BYTEA NOT NULL,
	volume_usd BIGINT NOT NULL,
	trades INTEGER NOT NULL,
	CONSTRAINT wallet_days_pkey PRIMARY KEY (day, wallet)
);

COMMENT ON COLUMN wallet_days.day IS 'UTC';

CREATE TABLE wallet_fills (
	wallet BYTEA NOT NULL,
	ts TIMESTAMP WITH TIME ZONE NOT NULL,
	block_number BIGINT NOT NULL,
	log_index INTEGER NOT NULL,
	is_taker BOOLEAN NOT NULL,
	token_key INTEGER NOT NULL,
	side SMALLINT NOT NULL,
	price BIGINT,
	size BIGINT NOT NULL,
	value_usd BIGINT NOT NULL,
	fee_usd BIGINT NOT NULL
);

select create_hypertable('wallet_fills', by_range('ts', interval '1 day'), create_default_indexes => false);

CREATE INDEX wallet_fills_block_idx ON wallet_fills (block_number, ts);

CREATE UNIQUE INDEX wallet_fills_wallet_idx ON wallet_fills (wallet, ts desc, block_number, log_index, is_taker);

COMMENT ON TABLE wallet_fills IS 'One row an order''s owner and fill: a match is in two wallets'' histories and counted once in volume';

COMMENT ON COLUMN wallet_fills.is_taker IS 'The wallet''s role';

COMMENT ON COLUMN wallet_fills.side IS 'The wallet''s: 1 BUY, -1 SELL';

CREATE TABLE wallet_hours (
	hour TIMESTAMP WITH TIME ZONE NOT NULL,
	wallet BYTEA NOT NULL,
	volume_usd BIGINT NOT NULL,
	trades INTEGER NOT NULL,
	CONSTRAINT wallet_hours_pkey PRIMARY KEY (hour, wallet)
);

COMMENT ON TABLE wallet_hours IS 'Of the last two days';

CREATE TABLE wallet_positions (
	base BOOLEAN NOT NULL,
	wallet BYTEA NOT NULL,
	token_key INTEGER NOT NULL,
	buys INTEGER NOT NULL,
	bought BIGINT NOT NULL,
	bought_usd BIGINT NOT NULL,
	sells INTEGER NOT NULL,
	sold BIGINT NOT NULL,
	sold_usd BIGINT NOT NULL,
	held BIGINT NOT NULL,
	covered BIGINT NOT NULL,
	cost_usd NUMERIC NOT NULL,
	realized_usd NUMERIC NOT NULL,
	left_out INTEGER NOT NULL,
	first_trade TIMESTAMP WITH TIME ZONE,
	last_trade TIMESTAMP WITH TIME ZONE,
	CONSTRAINT wallet_positions_pkey PRIMARY KEY (base, wallet, token_key)
);

alter table wallet_positions set (fillfactor = 70);

COMMENT ON TABLE wallet_positions IS 'Each token that a wallet ever had; what came since is added when read';

COMMENT ON COLUMN wallet_positions.base IS 'False: up to positions_head.done. True: up to base_block, which others are made anew from';

COMMENT ON COLUMN wallet_positions.buys IS 'Fills';

COMMENT ON COLUMN wallet_positions.bought IS 'Shares';

COMMENT ON COLUMN wallet_positions.held IS 'Shares, by all that is known; below 0: some came from before';

COMMENT ON COLUMN wallet_positions.covered IS 'Shares of those whose cost is known';

COMMENT ON COLUMN wallet_positions.cost_usd IS 'What these cost, by average; micro-USD to twelve decimals';

COMMENT ON COLUMN wallet_positions.realized_usd IS 'Micro-USD to twelve decimals';

COMMENT ON COLUMN wallet_positions.left_out IS 'Rows left out of the cost, in whole or in part';

COMMENT ON COLUMN wallet_positions.first_trade IS 'Null: never traded, only split, converted or transferred';

CREATE TABLE wallet_totals (
	wallet BYTEA NOT NULL,
	buys BIGINT NOT NULL,
	bought_usd BIGINT NOT NULL,
	sells BIGINT NOT NULL,
	sold_usd BIGINT NOT NULL,
	volume_usd BIGINT NOT NULL,
	first_trade TIMESTAMP WITH TIME ZONE NOT NULL,
	last_trade TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT wallet_totals_pkey PRIMARY KEY (wallet)
);

alter table wallet_totals set (fillfactor = 70);

CREATE INDEX wallet_totals_volume_idx ON wallet_totals (volume_usd desc);

COMMENT ON TABLE wallet_totals IS 'All fills of a wallet, up to positions_head.done';

COMMENT ON COLUMN wallet_totals.buys IS 'Fills';

CREATE TABLE webhook_head (
	one BOOLEAN DEFAULT true NOT NULL,
	last_seq BIGINT DEFAULT 0 NOT NULL,
	version BIGINT DEFAULT 0 NOT NULL,
	CONSTRAINT webhook_head_pkey PRIMARY KEY (one),
	CONSTRAINT webhook_head_one_check CHECK (one)
);

alter table webhook_head set (fillfactor = 10);

COMMENT ON TABLE webhook_head IS 'One row: how far the stream has been made into deliveries';

COMMENT ON COLUMN webhook_head.last_seq IS 'Events up to here are seen to';

COMMENT ON COLUMN webhook_head.version IS 'Moved when a webhook changes';

CREATE TABLE api_keys (
	key_id INTEGER GENERATED ALWAYS AS IDENTITY,
	account_id BIGINT NOT NULL,
	key_hash BYTEA NOT NULL,
	prefix TEXT NOT NULL,
	tier TEXT NOT NULL,
	credits_month BIGINT,
	credits_burst INTEGER,
	max_connections INTEGER,
	max_webhooks INTEGER,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	revoked_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT api_keys_pkey PRIMARY KEY (key_id),
	CONSTRAINT api_keys_account_id_fkey FOREIGN KEY(account_id) REFERENCES accounts (account_id),
	CONSTRAINT api_keys_key_hash_key UNIQUE (key_hash),
	CONSTRAINT api_keys_tier_fkey FOREIGN KEY(tier) REFERENCES tiers (tier)
);

CREATE INDEX api_keys_account_id_idx ON api_keys (account_id);

COMMENT ON COLUMN api_keys.key_hash IS 'SHA-256; the key itself is shown once and never stored';

COMMENT ON COLUMN api_keys.prefix IS 'For display';

COMMENT ON COLUMN api_keys.credits_month IS 'Overrides the tier''s';

COMMENT ON COLUMN api_keys.credits_burst IS 'Overrides the tier''s';

COMMENT ON COLUMN api_keys.max_connections IS 'Overrides the tier''s';

COMMENT ON COLUMN api_keys.max_webhooks IS 'Overrides the tier''s';

CREATE TABLE market_status_changes (
	change_id BIGINT GENERATED ALWAYS AS IDENTITY,
	market_key INTEGER NOT NULL,
	ts TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	from_status TEXT,
	to_status TEXT NOT NULL,
	cause TEXT NOT NULL,
	CONSTRAINT market_status_changes_pkey PRIMARY KEY (change_id),
	CONSTRAINT market_status_changes_market_key_fkey FOREIGN KEY(market_key) REFERENCES markets (market_key) ON DELETE CASCADE
);

CREATE INDEX market_status_changes_market_key_idx ON market_status_changes (market_key);

CREATE TABLE tokens (
	token_id TEXT NOT NULL,
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	CONSTRAINT tokens_pkey PRIMARY KEY (token_id),
	CONSTRAINT tokens_market_key_fkey FOREIGN KEY(market_key) REFERENCES markets (market_key) ON DELETE CASCADE
);

CREATE INDEX tokens_market_key_idx ON tokens (market_key);

COMMENT ON COLUMN tokens.token_id IS 'uint256 in decimal, up to 78 digits';

CREATE TABLE wallets_followed (
	account_id BIGINT NOT NULL,
	wallet BYTEA NOT NULL,
	until_at TIMESTAMP WITH TIME ZONE NOT NULL,
	CONSTRAINT wallets_followed_pkey PRIMARY KEY (account_id, wallet),
	CONSTRAINT wallets_followed_account_id_fkey FOREIGN KEY(account_id) REFERENCES accounts (account_id)
);

CREATE INDEX wallets_followed_wallet_idx ON wallets_followed (wallet);

COMMENT ON TABLE wallets_followed IS 'Wallets subscribed to on the stream: told of there until then, as watched ones are, but not stored';

COMMENT ON COLUMN wallets_followed.until_at IS 'Moved on for as long as the subscription lasts';

CREATE TABLE wallets_watched (
	account_id BIGINT NOT NULL,
	wallet BYTEA NOT NULL,
	blocks INT8MULTIRANGE NOT NULL,
	watched_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	unwatched_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT wallets_watched_pkey PRIMARY KEY (account_id, wallet),
	CONSTRAINT wallets_watched_account_id_fkey FOREIGN KEY(account_id) REFERENCES accounts (account_id)
);

CREATE INDEX wallets_watched_wallet_idx ON wallets_watched (wallet);

COMMENT ON COLUMN wallets_watched.blocks IS 'Captured of these: a stretch for each time it was watched';

COMMENT ON COLUMN wallets_watched.unwatched_at IS 'What was captured until then is kept for its 90 days';

CREATE TABLE webhooks (
	webhook_id UUID DEFAULT gen_random_uuid() NOT NULL,
	number BIGINT GENERATED ALWAYS AS IDENTITY,
	account_id BIGINT NOT NULL,
	url TEXT NOT NULL,
	events TEXT[] NOT NULL,
	market_ids TEXT[],
	wallets BYTEA[],
	min_usd BIGINT,
	secret TEXT NOT NULL,
	next_secret TEXT,
	since_seq BIGINT NOT NULL,
	waiting INTEGER DEFAULT 0 NOT NULL,
	due_at TIMESTAMP WITH TIME ZONE,
	disabled_at TIMESTAMP WITH TIME ZONE,
	disabled_reason TEXT,
	created_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	updated_at TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
	CONSTRAINT webhooks_pkey PRIMARY KEY (webhook_id),
	CONSTRAINT webhooks_number_key UNIQUE (number),
	CONSTRAINT webhooks_account_id_fkey FOREIGN KEY(account_id) REFERENCES accounts (account_id)
);

alter table webhooks set (fillfactor = 50);

CREATE INDEX webhooks_account_id_idx ON webhooks (account_id);

CREATE INDEX webhooks_due_at_idx ON webhooks (due_at) WHERE due_at is not null and disabled_at is null;

COMMENT ON COLUMN webhooks.number IS 'In the order of making';

COMMENT ON COLUMN webhooks.events IS 'Types, or what stands before their dot';

COMMENT ON COLUMN webhooks.market_ids IS 'Null: of any market';

COMMENT ON COLUMN webhooks.wallets IS 'Null: of any wallet';

COMMENT ON COLUMN webhooks.min_usd IS 'Null: of any value';

COMMENT ON COLUMN webhooks.secret IS 'Needed in clear: it signs';

COMMENT ON COLUMN webhooks.next_secret IS 'While secrets are being rotated: both sign';

COMMENT ON COLUMN webhooks.since_seq IS 'Told of the events after this one';

COMMENT ON COLUMN webhooks.waiting IS 'Deliveries that are not over';

COMMENT ON COLUMN webhooks.due_at IS 'When the first of them may be tried; null: none waits';

COMMENT ON COLUMN webhooks.disabled_at IS 'Null: enabled';

CREATE TABLE credit_leases (
	lease_id BIGSERIAL NOT NULL,
	key_id INTEGER NOT NULL,
	month TIMESTAMP WITH TIME ZONE NOT NULL,
	granted BIGINT NOT NULL,
	step BIGINT NOT NULL,
	CONSTRAINT credit_leases_pkey PRIMARY KEY (lease_id),
	CONSTRAINT credit_leases_key_id_fkey FOREIGN KEY(key_id) REFERENCES api_keys (key_id)
);

CREATE INDEX credit_leases_key_id_idx ON credit_leases (key_id);

COMMENT ON TABLE credit_leases IS 'What hosts hold of the keys'' credits; a row whose host has crashed is past use, and goes with its month';

COMMENT ON COLUMN credit_leases.lease_id IS 'Drawn at random by the host that spends it';

COMMENT ON COLUMN credit_leases.month IS 'Its first instant, UTC';

COMMENT ON COLUMN credit_leases.granted IS 'Credits taken so far, spent or not; credit_usage has them';

COMMENT ON COLUMN credit_leases.step IS 'Raised by each grant: an answer that got lost is told again';

CREATE TABLE credit_usage (
	key_id INTEGER NOT NULL,
	month TIMESTAMP WITH TIME ZONE NOT NULL,
	used BIGINT DEFAULT 0 NOT NULL,
	CONSTRAINT credit_usage_pkey PRIMARY KEY (key_id, month),
	CONSTRAINT credit_usage_key_id_fkey FOREIGN KEY(key_id) REFERENCES api_keys (key_id)
);

alter table credit_usage set (fillfactor = 50);

COMMENT ON COLUMN credit_usage.month IS 'Its first instant, UTC';

COMMENT ON COLUMN credit_usage.used IS 'Those leased to a host included';

CREATE TABLE webhook_deliveries (
	delivery_id UUID DEFAULT gen_random_uuid() NOT NULL,
	webhook_id UUID NOT NULL,
	number BIGINT GENERATED BY DEFAULT AS IDENTITY,
	seq BIGINT,
	type TEXT NOT NULL,
	body TEXT NOT NULL,
	state TEXT DEFAULT 'waiting' NOT NULL,
	attempts SMALLINT DEFAULT 0 NOT NULL,
	next_at TIMESTAMP WITH TIME ZONE,
	log JSONB DEFAULT '[]'::jsonb NOT NULL,
	created_at TIMESTAMP WITH TIME ZONE NOT NULL,
	ended_at TIMESTAMP WITH TIME ZONE,
	CONSTRAINT webhook_deliveries_pkey PRIMARY KEY (delivery_id),
	CONSTRAINT webhook_deliveries_next_at_check CHECK ((state = 'waiting') = (next_at is not null)),
	CONSTRAINT webhook_deliveries_webhook_id_fkey FOREIGN KEY(webhook_id) REFERENCES webhooks (webhook_id) ON DELETE CASCADE
);

CREATE INDEX webhook_deliveries_ended_at_idx ON webhook_deliveries (ended_at) WHERE ended_at is not null;

CREATE INDEX webhook_deliveries_number_idx ON webhook_deliveries (webhook_id, number);

CREATE UNIQUE INDEX webhook_deliveries_seq_idx ON webhook_deliveries (webhook_id, seq) WHERE seq is not null;

CREATE INDEX webhook_deliveries_waiting_idx ON webhook_deliveries (webhook_id, (seq is not null), number) WHERE state = 'waiting';

COMMENT ON COLUMN webhook_deliveries.delivery_id IS 'In webhook-id, at each attempt alike';

COMMENT ON COLUMN webhook_deliveries.number IS 'The order of delivery, tests first';

COMMENT ON COLUMN webhook_deliveries.seq IS 'The event''s place in the stream; null: a test';

COMMENT ON COLUMN webhook_deliveries.body IS 'As it is sent: what the signature is of';

COMMENT ON COLUMN webhook_deliveries.state IS 'waiting, delivered or failed';

COMMENT ON COLUMN webhook_deliveries.attempts IS 'Of its round of ten';

COMMENT ON COLUMN webhook_deliveries.next_at IS 'When it may be tried next; null: it is over';

COMMENT ON COLUMN webhook_deliveries.log IS 'The latest attempts, oldest first';

create function lease_credits(
    of_key integer, in_month timestamptz, of_lease bigint, known_granted bigint, known_step bigint, wanted bigint,
    out now_granted bigint, out now_step bigint, out month_used bigint, out month_left bigint
)
language plpgsql
as $$
declare
    held credit_leases;
    quota bigint;
    more bigint;
begin
    insert into credit_usage (key_id, month) values (of_key, in_month) on conflict do nothing;
    -- Everyone locks this row first: who leases and who returns take turns.
    select u.used into month_used from credit_usage u where u.key_id = of_key and u.month = in_month for update;
    select coalesce(k.credits_month, t.credits_month) into quota
    from api_keys k join tiers t using (tier) where k.key_id = of_key;
    select * into held from credit_leases l where l.lease_id = of_lease;

    now_granted := known_granted;
    now_step := known_step;
    if held.lease_id is null and known_step > 0 then
        now_step := -1;  -- It has ended: what it had not spent is no longer its own.
    elsif held.step <> known_step then
        now_granted := held.granted;
        now_step := held.step;
    elsif held.granted > known_granted then
        -- A return that was begun and not finished. It will not be: its step has passed.
        now_granted := held.granted;
        now_step := known_step + 1;
        update credit_leases l set step = now_step where l.lease_id = of_lease;
    else
        more := greatest(0, least(wanted, coalesce(quota - month_used, wanted)));  -- a lowered quota may lie below what is used
        if more > 0 then
            now_granted := known_granted + more;
            now_step := known_step + 1;
            month_used := month_used + more;
            update credit_usage u set used = month_used where u.key_id = of_key and u.month = in_month;
            update credit_leases l set granted = now_granted, step = now_step where l.lease_id = of_lease;
            if not found then
                insert into credit_leases (lease_id, key_id, month, granted, step)
                values (of_lease, of_key, in_month, now_granted, now_step);
                delete from credit_leases l where l.key_id = of_key and l.month < in_month - interval '40 days';
            end if;
        end if;
    end if;
    month_left := case when quota is not null then greatest(0, quota - month_used) end;
end
$$;

create function return_credits(of_key integer, in_month timestamptz, of_lease bigint, known_step bigint, spent bigint) returns boolean
language plpgsql
as $$
declare
    held credit_leases;
begin
    perform from credit_usage u where u.key_id = of_key and u.month = in_month for update;
    select * into held from credit_leases l where l.lease_id = of_lease;
    if held.step <> known_step then
        return false;
    end if;
    delete from credit_leases l where l.lease_id = of_lease;
    update credit_usage u set used = u.used - greatest(0, held.granted - spent)
    where u.key_id = of_key and u.month = in_month and held.granted > spent;
    return true;
end
$$;

create function position_step(so_far numeric[], shares bigint, usd numeric, opening numeric[]) returns numeric[]
language plpgsql immutable parallel safe
as $$
declare
    held numeric;
    covered numeric;
    cost numeric;
    realized numeric;
    left_out numeric;
    went numeric;
    part numeric;
    spent numeric;
begin
    if so_far is null then
        so_far := coalesce(opening, '{0, 0, 0.000000000000, 0.000000000000, 0}');
    end if;
    held := so_far[1];
    covered := so_far[2];
    cost := so_far[3];
    realized := so_far[4];
    left_out := so_far[5];
    held := held + shares;
    if shares > 0 then
        if usd is null then
            left_out := left_out + 1;  -- They are held, and nobody knows what they cost.
        else
            covered := covered + shares;
            cost := cost + usd;
        end if;
    elsif shares < 0 then
        went := -shares;
        part := least(went, covered);  -- Those with a cost go first; for what goes beyond them there is none to hold against the price.
        if usd is null or part < went then
            left_out := left_out + 1;
        end if;
        if part > 0 then
            spent := case when part = covered then cost else round(cost * part / covered, 12) end;
            cost := cost - spent;
            covered := covered - part;
            if usd is not null then
                realized := realized + case when part = went then usd else round(usd * part / went, 12) end - spent;
            end if;
        end if;
    end if;
    return array[held, covered, cost, realized, left_out];
end
$$;

create aggregate position_of(shares bigint, usd numeric, opening numeric[]) (
    sfunc = position_step,
    stype = numeric[]
);

create function onchain_record(
    tx_hash bytea, log_index integer, block_number bigint, block_hash bytea, market_id text, token_id text, outcome smallint,
    maker bytea, taker bytea, side smallint, price bigint, size bigint, value_usd bigint, fee_usd bigint, contract bytea,
    is_taker_order boolean, finalized boolean, ts timestamptz
) returns json
language sql stable parallel safe
return json_build_object(
    'tx_hash', '0x' || encode(tx_hash, 'hex'), 'log_index', log_index, 'block_number', block_number,
    'block_hash', '0x' || encode(block_hash, 'hex'), 'market_id', market_id, 'token_id', token_id, 'outcome', outcome,
    'maker', '0x' || encode(maker, 'hex'), 'taker', '0x' || encode(taker, 'hex'),
    'side', case when side > 0 then 'BUY' else 'SELL' end,
    'price', as_number(price), 'size', as_number(size), 'value_usd', as_number(value_usd), 'fee_usd', as_number(fee_usd),
    'exchange_contract', '0x' || encode(contract, 'hex'), 'is_taker_order', is_taker_order, 'finalized', finalized, 'ts', as_ms(ts)
);

create function rows_since(of_wallet bytea) returns table (
    token_key integer, ts timestamptz, block_number bigint, log_index integer, entry smallint, shares bigint, usd numeric,
    side smallint, size bigint, value_usd bigint
)
language sql stable parallel safe
as $$
    select
        f.token_key, f.ts, f.block_number, f.log_index, f.is_taker::int::smallint, f.side * f.size,
        -- A fee makes what is bought dearer, and what is sold bring less.
        case when f.price is not null then f.value_usd + f.side * f.fee_usd end::numeric,
        f.side, f.size, f.value_usd
    from wallet_fills f
    where f.wallet = of_wallet
        and f.ts >= (select h.done_ts from positions_head h) and f.block_number > (select h.done from positions_head h)
    union all
    select c.token_key, c.ts, c.block_number, c.log_index, c.entry, c.shares, c.usd, null, null, null
    from position_changes c
    where c.wallet = of_wallet
        and c.ts >= (select h.done_ts from positions_head h) and c.block_number > (select h.done from positions_head h)
$$;

create function positions_now(of_wallet bytea) returns table (
    token_key integer, buys bigint, bought bigint, bought_usd bigint, sells bigint, sold bigint, sold_usd bigint,
    held bigint, covered bigint, cost_usd numeric, realized_usd numeric, left_out bigint,
    first_trade timestamptz, last_trade timestamptz
)
language sql stable parallel safe
as $$
    with since as materialized (select * from rows_since(of_wallet)),
    moved as (
        select
            r.token_key,
            count(*) filter (where r.side > 0) as buys, sum(r.size) filter (where r.side > 0) as bought,
            sum(r.value_usd) filter (where r.side > 0) as bought_usd,
            count(*) filter (where r.side < 0) as sells, sum(r.size) filter (where r.side < 0) as sold,
            sum(r.value_usd) filter (where r.side < 0) as sold_usd,
            min(r.ts) filter (where r.side is not null) as first_trade, max(r.ts) filter (where r.side is not null) as last_trade,
            position_of(
                r.shares, r.usd,
                case when p.wallet is not null then array[p.held, p.covered, p.cost_usd, p.realized_usd, p.left_out] end
                order by r.block_number, r.log_index, r.entry
            ) as at
        from since r
        left join wallet_positions p on not p.base and p.wallet = of_wallet and p.token_key = r.token_key
        group by r.token_key
    )
    select
        token_key, coalesce(p.buys, 0) + coalesce(m.buys, 0), (coalesce(p.bought, 0) + coalesce(m.bought, 0))::bigint,
        (coalesce(p.bought_usd, 0) + coalesce(m.bought_usd, 0))::bigint,
        coalesce(p.sells, 0) + coalesce(m.sells, 0), (coalesce(p.sold, 0) + coalesce(m.sold, 0))::bigint,
        (coalesce(p.sold_usd, 0) + coalesce(m.sold_usd, 0))::bigint,
        coalesce(m.at[1], p.held)::bigint, coalesce(m.at[2], p.covered)::bigint, coalesce(m.at[3], p.cost_usd),
        coalesce(m.at[4], p.realized_usd), coalesce(m.at[5], p.left_out)::bigint,
        least(p.first_trade, m.first_trade), greatest(p.last_trade, m.last_trade)
    from (select * from wallet_positions where not base and wallet = of_wallet) as p
    full join moved m using (token_key)
$$;

create function marked_positions(of_wallet bytea) returns table (
    market_id text, question text, slug text, status text, outcome smallint, token_id text,
    bought bigint, sold bigint, held bigint, covered bigint, cost_usd numeric, realized_usd numeric, left_out bigint,
    trades bigint, last_trade timestamptz, settled boolean, mark bigint, mark_source text
)
language sql stable parallel safe
as $$
    select
        m.market_id, m.question, m.slug, m.status, t.outcome, k.token_id,
        p.bought, p.sold, p.held, p.covered, p.cost_usd, p.realized_usd, p.left_out,
        p.buys + p.sells, p.last_trade, worth.settled,
        case when worth.settled then worth.stored else coalesce(worth.live, worth.stored) end,
        case when worth.settled then 'resolution' when worth.live is not null then 'market' when worth.stored is not null then 'exchange' end
    from positions_now(of_wallet) p
    join chain_tokens k using (token_key)
    left join tokens t using (token_id)
    left join markets m using (market_key)
    left join live_prices l on l.market_key = t.market_key and l.outcome = t.outcome
    cross join lateral (
        select
            coalesce(m.status = 'RESOLVED' and m.outcome_prices[t.outcome + 1] is not null, false) as settled,
            m.outcome_prices[t.outcome + 1] as stored, market_price(l.bid, l.ask, l.mid, l.last) as live
    ) as worth
$$;

alter table live_prices set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

alter table live_books set (
    autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0,

    toast.autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_threshold = 5000, toast.autovacuum_vacuum_cost_delay = 0
);

alter table stream_head set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);

alter table webhook_head set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);

alter table webhooks set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);

alter table stage_clocks set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0, fillfactor = 10);

alter table feed_leases set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0, fillfactor = 50);

alter table chain_heads set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0, fillfactor = 10);

alter table chain_ranges set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);

alter table chain_checks set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);

alter table credit_usage set (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_cost_delay = 0);

alter table market_stats_24h set (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0, fillfactor = 70);

alter table market_activity set (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);

alter table market_rankings set (autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_cost_delay = 0);

do $$
declare
    book record;
begin
    for book in
        select attrelid::regclass as name, attname as side from pg_attribute
        where attrelid in ('live_books'::regclass, 'book_events'::regclass) and attname ~ '^(bid|ask)_(prices|sizes)$'
    loop
        execute format('alter table %s alter column %I set compression lz4', book.name, book.side);
    end loop;
exception
    when feature_not_supported then null;
end
$$;

alter table book_packs alter column data set storage external;
