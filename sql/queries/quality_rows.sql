-- Rows that break an expectation that is no condition on one row. Each query returns nothing while all is well. They read the new
-- rows prepared by queries/quality.sql. Time bounds are given separately, so that other chunks are excluded.

-- name: trades_twice()
-- New trades of which another row has the same identity, as sources give one trade different timestamps.
select f.*, t.ts as other_ts
from fresh_trades f
join trades t
    on t.market_key = f.market_key and t.outcome = f.outcome and t.trade_id = f.trade_id and t.ts <> f.ts
    and t.ts between f.ts - interval '10 minutes' and f.ts + interval '10 minutes'
where t.ts >= (select min(ts) from fresh_trades) - interval '10 minutes'
    and t.ts <= (select max(ts) from fresh_trades) + interval '10 minutes';

-- name: trades_outside_book()
-- New trades at prices that no quote came near, from the one in force two seconds before to two seconds after. The exchange sends
-- trades and books separately, and a large order eats through levels, so some always lie outside. A trade changes the book. Where no
-- change was received just then, the book was not being followed, and its quotes prove nothing (recordings of books taken now and
-- then). Each exchange has a share of its own.
with judged as materialized (
    select f.*, m.exchange, around.low, around.high
    from fresh_trades f
    join markets m using (market_key)
    cross join lateral (
        select q.ts from quotes q
        where q.market_key = f.market_key and q.outcome = f.outcome
            and q.ts <= f.ts - interval '2 seconds' and q.ts >= f.ts - interval '10 minutes'
            and q.ts >= (select min(ts) from fresh_trades) - interval '10 minutes'
        order by q.ts desc limit 1
    ) as stood
    cross join lateral (
        select min(q.bid) as low, max(q.ask) as high from quotes q
        where q.market_key = f.market_key and q.outcome = f.outcome and q.ts between stood.ts and f.ts + interval '2 seconds'
            and q.ts >= (select min(ts) from fresh_trades) - interval '10 minutes'
    ) as around
    where around.low is not null and around.high is not null
        and exists (
            select from book_events e
            where e.market_key = f.market_key and e.outcome = f.outcome
                and e.ts between f.ts - interval '2 seconds' and f.ts + interval '2 seconds'
                and e.ts >= (select min(ts) from fresh_trades) - interval '10 minutes'
        )
),
outside as materialized (
    select * from judged where price < low - 20000 or price > high + 20000
)
select *
from outside
where exchange in (
    select exchange from judged group by exchange
    having count(*) filter (where price < low - 20000 or price > high + 20000) > greatest(3, count(*) / 10)
);

-- name: book_events_twice()
-- New changes of a book that are equal in all but their ID.
select ts, market_key, outcome, seq, side, price, size, count(*) as times, array_agg(event_id) as event_ids
from fresh_book_events
where side is not null
group by ts, market_key, outcome, seq, side, price, size
having count(*) > 1;

-- name: prices_not_complementary()
-- New prices of Yes whose No's is another's complement. Of one moment only: a price that moved on while its complement's message was
-- lost says nothing about either.
with pairs as materialized (
    select yes.market_key, m.exchange, yes.ts, yes.bid, yes.ask, yes.mid, no.ts as no_ts, no.bid as no_bid, no.ask as no_ask, no.mid as no_mid
    from fresh_live_prices yes
    join fresh_live_prices no on no.market_key = yes.market_key and no.outcome = 1
    join markets m on m.market_key = yes.market_key
    where yes.outcome = 0 and m.status = 'ACTIVE' and cardinality(m.outcomes) = 2 and yes.mid is not null and no.mid is not null
        and abs(extract(epoch from yes.ts - no.ts)) < 60
),
apart as materialized (
    select * from pairs where abs(mid + no_mid - 1000000) > 20000
)
select *
from apart
where exchange in (
    select exchange from pairs group by exchange
    having count(*) filter (where abs(mid + no_mid - 1000000) > 20000) > greatest(3, count(*) / 20)
);

-- name: stream_gaps()
-- Numbers that are missing among the newest of the stream, up to a million; or that two blocks have.
select seq_before + 1 as low, seq_from - 1 as high
from (
    select lag(seq_to) over (order by seq_from) as seq_before, seq_from
    from (
        select b.seq_from, b.seq_to from stream_blocks b, stream_head h where b.seq_from > h.last_seq - 1000000
        union all
        select last_seq + 1, null from stream_head where exists (select from fresh_stream_events)
    ) as block
) as neighbours
where seq_from <> seq_before + 1;

-- name: matches_without_taker()
-- New fills of a match whose taker's own row is not where they say.
select f.*
from fresh_settlements f
where f.match_index is not null and not exists (
    select from fresh_settlements t
    where t.block_number = f.block_number and t.log_index = f.match_index and t.is_taker_order and t.match_index = t.log_index
);

-- name: fills_without_history()
-- New fills that are missing in their maker's history, or differ there.
select f.*
from fresh_settlements f
where not exists (
    select from fresh_wallet_fills w
    where w.block_number = f.block_number and w.log_index = f.log_index and w.wallet = f.maker and w.ts = f.ts
        and (w.token_key, w.side, w.size, w.value_usd, w.is_taker) = (f.token_key, f.side, f.size, f.value_usd, f.is_taker_order)
);

-- name: histories_without_fill()
-- New rows of histories without a matching settlement.
select w.*
from fresh_wallet_fills w
where not exists (
    select from fresh_settlements f
    where f.block_number = w.block_number and f.log_index = w.log_index and f.ts = w.ts and w.wallet in (f.maker, f.taker)
        and f.size = w.size
);

-- name: changes_without_entry()
-- New position changes without a ledger entry.
select c.*
from fresh_position_changes c
where not exists (
    select from fresh_ledger_entries e
    where e.block_number = c.block_number and e.log_index = c.log_index and e.entry = c.entry and e.kind = c.kind
);

-- name: boards_out_of_order()
-- Ranks of leaderboards that come after a hole, or behind a smaller value.
select *
from (
    select
        *, row_number() over board as place,
        case "by" when 'volume' then volume_usd when 'pnl' then pnl_usd else window_pnl_usd end
            > lag(case "by" when 'volume' then volume_usd when 'pnl' then pnl_usd else window_pnl_usd end) over board as more
    from fresh_leaderboards
    window board as (partition by span, "by" order by rank)
) as b
where place <> rank or more;

-- name: minutes_unlike_trades()
-- New candles and their trades' values, both as they are now. Late trades are included at once, or (Community licence) with the next
-- refresh, so what has been filled in within ten minutes is left to a later pass.
select f.*, t.open as of_open, t.high as of_high, t.low as of_low, t.close as of_close, t.volume as of_volume,
    t.value_usd as of_value_usd, t.trades as of_trades
from fresh_candles_1m k
join candles_1m f
    on f.market_key = k.market_key and f.outcome = k.outcome and f.bucket = k.bucket
    and f.bucket >= (select min(bucket) from fresh_candles_1m)
cross join lateral (
    select
        first(price, seq) as open, max(price) as high, min(price) as low, last(price, seq) as close,
        sum(size)::bigint as volume, sum(value_usd)::bigint as value_usd, count(*) as trades,
        min(seq) as first_seq, max(seq) as last_seq
    from trades t
    where t.market_key = f.market_key and t.outcome = f.outcome and t.ts >= f.bucket and t.ts < f.bucket + interval '1 minute'
        and t.ts >= (select min(bucket) from fresh_candles_1m)
) as t
where (f.open, f.high, f.low, f.close, f.volume, f.value_usd, f.trades, f.first_seq, f.last_seq)
        is distinct from (t.open, t.high, t.low, t.close, t.volume, t.value_usd, t.trades, t.first_seq, t.last_seq)
    and not exists (
        select from coverage_gaps g
        where g.kind = 'trades' and g.filled_at > now() - interval '10 minutes' and g.from_ts < f.bucket + interval '1 minute' and g.to_ts >= f.bucket
    );

-- name: minutes_missing()
-- Past minutes with new trades, not filled in just now, that have no candle.
select f.market_key, f.outcome, f.bucket, f.trades
from (
    select market_key, outcome, time_bucket('1 minute', ts) as bucket, count(*) as trades
    from fresh_trades
    where ts < now() - interval '1 minute'
    group by market_key, outcome, bucket
) as f
where not exists (
        select from candles_1m c
        where c.market_key = f.market_key and c.outcome = f.outcome and c.bucket = f.bucket
            and c.bucket >= (select min(ts) from fresh_trades) - interval '1 minute'
    )
    and not exists (
        select from coverage_gaps g
        where g.kind = 'trades' and g.filled_at > now() - interval '10 minutes' and g.from_ts < f.bucket + interval '1 minute' and g.to_ts >= f.bucket
    );

-- name: hours_unlike_minutes()
-- Candles of hours, those of outcomes with new minutes, and the minutes' values; likewise.
select f.*, m.open as of_open, m.high as of_high, m.low as of_low, m.close as of_close, m.volume as of_volume,
    m.value_usd as of_value_usd, m.trades as of_trades
from fresh_candles_1h k
join candles_1h f
    on f.market_key = k.market_key and f.outcome = k.outcome and f.bucket = k.bucket
    and f.bucket >= (select min(bucket) from fresh_candles_1h)
cross join lateral (
    select
        first(open, first_seq) as open, max(high) as high, min(low) as low, last(close, last_seq) as close,
        sum(volume)::bigint as volume, sum(value_usd)::bigint as value_usd, sum(trades)::bigint as trades
    from candles_1m m
    where m.market_key = f.market_key and m.outcome = f.outcome and m.bucket >= f.bucket and m.bucket < f.bucket + interval '1 hour'
        and m.bucket >= (select min(bucket) from fresh_candles_1h)
) as m
where (k.market_key, k.outcome) in (select market_key, outcome from fresh_candles_1m)
    and (f.open, f.high, f.low, f.close, f.volume, f.value_usd, f.trades)
        is distinct from (m.open, m.high, m.low, m.close, m.volume, m.value_usd, m.trades)
    and not exists (
        select from coverage_gaps g
        where g.kind = 'trades' and g.filled_at > now() - interval '10 minutes' and g.from_ts < f.bucket + interval '1 hour' and g.to_ts >= f.bucket
    );

-- name: ranks_missing()
-- Ranks of the newest ranking that come after a hole.
select * from (select *, row_number() over (order by rank) as place from fresh_market_rankings) as r where place <> rank;
