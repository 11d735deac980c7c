CREATE TABLE candles_1h (
	bucket TIMESTAMP WITH TIME ZONE NOT NULL,
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	open BIGINT NOT NULL,
	high BIGINT NOT NULL,
	low BIGINT NOT NULL,
	close BIGINT NOT NULL,
	volume BIGINT NOT NULL,
	value_usd BIGINT NOT NULL,
	trades BIGINT NOT NULL,
	first_seq BIGINT NOT NULL,
	last_seq BIGINT NOT NULL
);

CREATE TABLE candles_1m (
	bucket TIMESTAMP WITH TIME ZONE NOT NULL,
	market_key INTEGER NOT NULL,
	outcome SMALLINT NOT NULL,
	open BIGINT NOT NULL,
	high BIGINT NOT NULL,
	low BIGINT NOT NULL,
	close BIGINT NOT NULL,
	volume BIGINT NOT NULL,
	value_usd BIGINT NOT NULL,
	trades BIGINT NOT NULL,
	first_seq BIGINT NOT NULL,
	last_seq BIGINT NOT NULL
);

alter table candles_1m add primary key (market_key, outcome, bucket);

alter table candles_1h add primary key (market_key, outcome, bucket);

create index candles_1h_bucket_idx on candles_1h (bucket desc);

create index candles_1m_bucket_idx on candles_1m using brin (bucket) with (autosummarize = on);

alter table candles_1m set (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);

alter table candles_1h set (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.05);

create function note_insert() returns trigger language plpgsql as $$
begin
    perform set_config('presage.computed_again', 'no', true);
    return null;
end
$$;

create function keep_candles() returns trigger language plpgsql as $$
declare
    width interval := tg_argv[1];
    touched text;
    earliest timestamptz;
    latest timestamptz;
begin
    if tg_op = 'INSERT' and current_setting('presage.computed_again', true) is distinct from 'yes' then
        execute format($merge$
            insert into %I as candle (
                bucket, market_key, outcome, open, high, low, close, volume, value_usd, trades, first_seq, last_seq
            )
            select
                time_bucket($1, ts), market_key, outcome,
                first(price, seq), max(price), min(price), last(price, seq),
                sum(size), sum(value_usd), count(*), min(seq), max(seq)
            from added
            group by 2, 3, 1
            order by 2, 3, 1
            on conflict (market_key, outcome, bucket) do update set
                open = case when excluded.first_seq < candle.first_seq then excluded.open else candle.open end,
                high = greatest(candle.high, excluded.high),
                low = least(candle.low, excluded.low),
                close = case when excluded.last_seq > candle.last_seq then excluded.close else candle.close end,
                volume = candle.volume + excluded.volume,
                value_usd = candle.value_usd + excluded.value_usd,
                trades = candle.trades + excluded.trades,
                first_seq = least(candle.first_seq, excluded.first_seq),
                last_seq = greatest(candle.last_seq, excluded.last_seq)
        $merge$, tg_argv[0]) using width;
        return null;
    end if;

    perform set_config('presage.computed_again', 'yes', true);
    touched := case tg_op
        when 'INSERT' then 'select market_key, outcome, ts from added'
        when 'DELETE' then 'select market_key, outcome, ts from removed'
        -- An update of what no candle shows (a hash that became known) touches none.
        else $changed$
            select market_key, outcome, ts from (
                (select market_key, outcome, ts, seq, price, size, value_usd from removed
                 except all select market_key, outcome, ts, seq, price, size, value_usd from added)
                union all
                (select market_key, outcome, ts, seq, price, size, value_usd from added
                 except all select market_key, outcome, ts, seq, price, size, value_usd from removed)
            ) as changed
        $changed$
    end;
    execute format('select min(time_bucket($1, ts)), max(time_bucket($1, ts)) + $1 from (%s) as touched', touched)
    into earliest, latest using width;
    if earliest is null then
        return null;
    end if;

    -- First hold the rows, present or not: this waits for whoever is writing them. What they wrote is seen by the next statement,
    -- which has a newer snapshot; what comes after waits for us and is merged into what we computed.
    execute format($hold$
        insert into %I as candle (
            bucket, market_key, outcome, open, high, low, close, volume, value_usd, trades, first_seq, last_seq
        )
        select distinct time_bucket($1, ts), market_key, outcome, 0, 0, 0, 0, 0, 0, 0, 0, 0
        from (%s) as touched
        order by 2, 3, 1
        on conflict (market_key, outcome, bucket) do update set trades = 0
    $hold$, tg_argv[0], touched) using width;

    -- The bounds are known when this is planned, so that only chunks that matter are opened.
    execute format($compute$
        insert into %I as candle (
            bucket, market_key, outcome, open, high, low, close, volume, value_usd, trades, first_seq, last_seq
        )
        select
            bucket, trades.market_key, trades.outcome,
            first(price, seq), max(price), min(price), last(price, seq),
            sum(size), sum(value_usd), count(*), min(seq), max(seq)
        from (select distinct time_bucket($1, ts) as bucket, market_key, outcome from (%s) as touched) as key
        join trades
            on trades.market_key = key.market_key and trades.outcome = key.outcome
            and trades.ts >= key.bucket and trades.ts < key.bucket + $1
        where trades.ts >= $2 and trades.ts < $3
        group by 2, 3, 1
        on conflict (market_key, outcome, bucket) do update set
            open = excluded.open, high = excluded.high, low = excluded.low, close = excluded.close,
            volume = excluded.volume, value_usd = excluded.value_usd, trades = excluded.trades,
            first_seq = excluded.first_seq, last_seq = excluded.last_seq
    $compute$, tg_argv[0], touched) using width, earliest, latest;

    execute format($empty$
        delete from %I as candle
        using (select distinct time_bucket($1, ts) as bucket, market_key, outcome from (%s) as touched) as key
        where candle.market_key = key.market_key and candle.outcome = key.outcome and candle.bucket = key.bucket
            and candle.trades = 0
    $empty$, tg_argv[0], touched) using width;
    return null;
end
$$;

create function empty_candles() returns trigger language plpgsql as $$
begin
    truncate candles_1h, candles_1m;
    return null;
end
$$;

create trigger candles before insert on trades for each statement execute function note_insert();

create trigger candles_1_hours_added after insert on trades referencing new table as added
for each statement execute function keep_candles('candles_1h', '1 hour');

create trigger candles_2_minutes_added after insert on trades referencing new table as added
for each statement execute function keep_candles('candles_1m', '1 minute');

create trigger candles_1_hours_removed after delete on trades referencing old table as removed
for each statement execute function keep_candles('candles_1h', '1 hour');

create trigger candles_2_minutes_removed after delete on trades referencing old table as removed
for each statement execute function keep_candles('candles_1m', '1 minute');

create trigger candles_1_hours_changed after update on trades referencing old table as removed new table as added
for each statement execute function keep_candles('candles_1h', '1 hour');

create trigger candles_2_minutes_changed after update on trades referencing old table as removed new table as added
for each statement execute function keep_candles('candles_1m', '1 minute');

create trigger candles_emptied after truncate on trades for each statement execute function empty_candles();
