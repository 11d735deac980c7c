-- Data for the API benchmark: a simulated exchange's fortnight, generated in the database. Market activity is realistic: the r-th
-- busiest has about 1/r of the trades of the first. `of_rank` scatters ranks over the keys, so that neighbours are unrelated.

-- name: prepare#
-- Functions of this session.
set work_mem = '256MB';
set synchronous_commit = off;
select setseed(0.42);
create function pg_temp.of_rank(rank integer, markets integer) returns integer language sql immutable
return (rank::bigint * 7919 % markets)::integer + 1;
create function pg_temp.drawn(markets integer) returns integer language sql volatile
return pg_temp.of_rank(least(markets, floor(power(markets::float8, random()))::integer), markets);
create function pg_temp.token(market integer, outcome integer) returns text language sql immutable
return (('x' || left(md5('token ' || market || ' ' || outcome), 15))::bit(60)::bigint)::numeric * 10::numeric ^ 59 || '';

create function pg_temp.wallet(wallets integer) returns bytea language sql volatile
return substr(sha256(('wallet ' || floor(power(wallets::float8, random()))::integer)::bytea), 1, 20);

-- name: events(markets, now)!
-- Events, five markets each.
insert into events (event_id, slug, title, category, series, tags, start_time, end_time)
select e::text, 'event-' || e, 'The event number ' || e, 'category-' || e %% 12, 'series-' || e %% 200, array['tag-' || e %% 300],
       :now::timestamptz - interval '60 days', :now::timestamptz + interval '30 days'
from generate_series(0, :markets::integer / 5) as e;

-- name: markets(markets, now)!
-- Markets: seven of ten open, including all busy ones. The last key is the newest.
insert into markets (
    market_key, market_id, gamma_id, slug, question, description, status, event_id, event_title, category, series, tags, outcomes, token_ids,
    outcome_prices, start_time, end_time, created_at, closed_at, resolved_at, winning_outcome, volume_usd, volume_24h_usd, liquidity_usd,
    tick_size, image, url, source, raw
) overriding system value
select
    key, '0x' || encode(sha256(('market ' || key)::bytea), 'hex'), (500000 + key)::text,
    subject || '-reaches-' || key %% 1000 || '-by-' || left(md5(key::text), 6),
    'Will ' || initcap(subject) || ' reach ' || key %% 1000 || ' before the end of day ' || key %% 31 || '?',
    repeat('This market resolves to Yes if what it asks has come true by its end, and to No otherwise. ', 12),
    status, (key / 5)::text, 'The event number ' || key / 5, 'category-' || key / 5 %% 12, 'series-' || key / 5 %% 200,
    array['tag-' || key / 5 %% 300, 'tag-' || key %% 40, 'all'], array['Yes', 'No'],
    array[pg_temp.token(key, 0), pg_temp.token(key, 1)], array[500000, 500000],
    :now::timestamptz - interval '60 days',
    case when status = 'ACTIVE' then :now::timestamptz + interval '120 days' * power(random(), 4)
         else :now::timestamptz - interval '60 days' * random() end,
    :now::timestamptz - interval '300 days' * power(1 - key::float8 / :markets::integer, 1.5),
    case when status <> 'ACTIVE' then :now::timestamptz - interval '50 days' * random() end,
    case when status = 'RESOLVED' then :now::timestamptz - interval '50 days' * random() end,
    case when status = 'RESOLVED' then key %% 2 end,
    floor(random() * 1e12), floor(random() * 1e10), floor(random() * 1e10), 10000,
    'https://images.example.com/' || key || '.png', 'https://example.com/market/' || key, 'simulated',
    jsonb_build_object('id', key, 'description', repeat('As the exchange says it. ', 60), 'extra', md5(key::text))
from (
    select
        key,
        (array['bitcoin', 'ethereum', 'solana', 'the-fed-rate', 'inflation', 'rain-in-paris', 'the-election', 'a-strike', 'the-cup',
               'a-launch', 'gold', 'oil'])[1 + key %% 12] as subject,
        case when busy or key %% 10 < 7 then 'ACTIVE' when key %% 10 = 7 then 'CLOSED' else 'RESOLVED' end as status
    from (
        select key, key in (select pg_temp.of_rank(r, :markets::integer) from generate_series(1, 2000) as r) as busy
        from generate_series(1, :markets::integer) as key
    ) as keys
) as market
order by key;

-- name: without_triggers#
-- Of the rest: candles are computed at the end.
set session_replication_role = replica;

-- name: tokens()!
-- Their tokens.
insert into tokens (token_id, market_key, outcome)
select token, market_key, place - 1 from markets cross join unnest(token_ids) with ordinality as t (token, place);

-- name: status_changes()!
-- A few status changes.
insert into market_status_changes (market_key, ts, from_status, to_status, cause)
select market_key, coalesce(resolved_at, closed_at), 'ACTIVE', status, 'simulated' from markets where status <> 'ACTIVE';

-- name: trades(markets, trades, from_, to)!
-- Trades of a time range, in order of arrival.
insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd, tx_hash)
select
    ts, key, outcome, id, (floor(extract(epoch from ts) * 1000)::bigint << 20) + row_number() over (order by ts) %% 1048576,
    case when id %% 2 = 0 then 1 else -1 end, price, size, price * size / 1000000, sha256(int8send(id))
from (
    select
        ts, key, outcome, ('x' || left(md5(key || ' ' || nth || ' ' || :from_), 16))::bit(64)::bigint as id,
        least(990000, greatest(10000, (key::bigint * 7919 %% 90 + 5 + floor(random() * 5)::integer) * 10000::bigint)) as price,
        least(1e12, 1e7 * power(1 - random(), -0.7))::bigint as size
    from (
        select
            nth, :from_::timestamptz + (:to::timestamptz - :from_::timestamptz) * random() as ts, pg_temp.drawn(:markets) as key,
            (random() < 0.3)::integer as outcome
        from generate_series(1, :trades::integer) as nth
    ) as drawn
) as trade
order by ts;

-- name: minutes(from_, to)!
-- Their candles.
insert into candles_1m (market_key, outcome, bucket, open, high, low, close, volume, value_usd, trades, first_seq, last_seq)
select market_key, outcome, time_bucket('1 minute', ts), first(price, seq), max(price), min(price), last(price, seq), sum(size),
       sum(value_usd), count(*), min(seq), max(seq)
from trades where ts >= :from_ and ts < :to
group by 1, 2, 3;

-- name: hours(from_, to)!
-- The same by hour.
insert into candles_1h (market_key, outcome, bucket, open, high, low, close, volume, value_usd, trades, first_seq, last_seq)
select market_key, outcome, time_bucket('1 hour', bucket), first(open, first_seq), max(high), min(low), last(close, last_seq), sum(volume),
       sum(value_usd), sum(trades), min(first_seq), max(last_seq)
from candles_1m where bucket >= :from_ and bucket < :to
group by 1, 2, 3;

-- name: quotes(markets, quotes, from_, to)!
-- Changes of the best prices.
insert into quotes (ts, market_key, outcome, bid, ask, mid, bid_size, ask_size)
select ts, key, outcome, mid - 5000, mid + 5000, mid, floor(random() * 1e9), floor(random() * 1e9)
from (
    select
        :from_::timestamptz + (:to::timestamptz - :from_::timestamptz) * random() as ts, pg_temp.drawn(:markets) as key,
        (random() < 0.3)::integer as outcome, (10 + floor(random() * 80)::integer) * 10000 as mid
    from generate_series(1, :quotes::integer)
) as quote
order by ts
on conflict do nothing;

-- name: book_events(markets, events, from_, to)!
-- Changes of the books' levels.
insert into book_events (ts, market_key, outcome, event_id, seq, side, price, size, hash)
select ts, key, outcome, nth, (floor(extract(epoch from ts) * 1000)::bigint << 20) + nth %% 1048576, 1, 10000 * (1 + nth %% 99),
       floor(random() * 1e9), decode(md5(nth::text), 'hex')
from (
    select
        nth, :from_::timestamptz + (:to::timestamptz - :from_::timestamptz) * random() as ts, pg_temp.drawn(:markets) as key,
        (random() < 0.3)::integer as outcome
    from generate_series(1, :events::integer) as nth
) as change
order by ts;

-- name: live_prices(now)!
-- Prices of the open markets' outcomes: quiet ones were last updated up to two days ago.
insert into live_prices (market_key, outcome, bid, ask, mid, bid_size, ask_size, last, last_ts, ts)
select market_key, outcome, mid - 5000, mid + 5000, mid, 1e9, 1e9, mid, ts, ts
from (
    select market_key, outcome, (10 + market_key %% 80) * 10000 as mid, :now::timestamptz - interval '2 days' * power(random(), 6) as ts
    from markets cross join generate_series(0, 1) as outcome where status = 'ACTIVE'
) as price;

-- name: live_books(levels, now)!
-- Their books.
insert into live_books (market_key, outcome, bid_prices, bid_sizes, ask_prices, ask_sizes, tick_size, hash, seq, ts, verified)
select
    market_key, outcome, array(select 500000 - n * 10000 from generate_series(1, :levels::integer) as n),
    array(select market_key * 1000 + n * 12345678 from generate_series(1, :levels::integer) as n),
    array(select 500000 + n * 10000 from generate_series(1, :levels::integer) as n),
    array(select market_key * 999 + n * 23456789 from generate_series(1, :levels::integer) as n),
    10000, decode(md5(market_key::text), 'hex'), 1, :now, true
from markets cross join generate_series(0, 1) as outcome where status = 'ACTIVE';

-- name: feed()!
-- The feed counts as alive during the whole measurement.
update stage_clocks set beat_at = now() + interval '30 days', last_data_at = now(), detail = '{"backlog_events": 0}' where stage = 'ingestion';

-- name: signals(markets, signals, from_, to)!
-- Signals.
insert into signals (ts, market_key, outcome, signal_id, type, value, threshold, score, direction, window_s)
select
    date_trunc('minute', :from_::timestamptz + (:to::timestamptz - :from_::timestamptz) * random()), pg_temp.drawn(:markets), 0, nth,
    (array['momentum', 'volume_spike', 'whale_alert'])[1 + nth %% 3], value, 1, value, 1, 3600
from (select nth, 1 + power(random(), 4) * 20 as value from generate_series(1, :signals::integer) as nth) as found
on conflict do nothing;

-- name: chain_tokens()!
-- The chain's tokens: all of them.
insert into chain_tokens (token_key, token_id) overriding system value
select market_key * 2 + outcome, token_id from tokens order by market_key, outcome;

-- name: settlements(from_, to, wallets)!
-- Trades of a time range as settled: the maker's order, then the taker's own. Wallet activity is distributed like the markets'.
insert into settlements (
    ts, block_number, log_index, match_index, tx_hash, contract_key, token_key, maker, taker, side, price, size, value_usd, fee_usd,
    is_taker_order, counted
)
select
    ts, block, place * 2 + mine, place * 2 + 1, tx_hash, 1, market_key * 2 + outcome,
    case mine when 1 then taker else maker end, case mine when 1 then maker else taker end,
    case mine when 1 then side else -side end, price, size, value_usd, 0, mine = 1, mine = 1
from (
    select
        to_timestamp(block * 2) as ts, block, row_number() over (partition by block order by seq) as place, tx_hash, market_key, outcome,
        side, price, size, value_usd, pg_temp.wallet(:wallets) as maker, pg_temp.wallet(:wallets) as taker
    from (
        select *, floor(extract(epoch from ts) / 2)::bigint as block from trades where ts >= :from_ and ts < :to
    ) as trade
) as filled
cross join generate_series(0, 1) as mine
order by ts;

-- name: wallet_fills()!
-- The same by wallet.
insert into wallet_fills (wallet, ts, block_number, log_index, is_taker, token_key, side, price, size, value_usd, fee_usd)
select maker, ts, block_number, log_index, is_taker_order, token_key, side, price, size, value_usd, fee_usd from settlements;

-- name: blocks()!
-- The blocks of the settlements.
insert into chain_blocks (number, hash, parent, ts, logs)
select block_number, sha256(int8send(block_number)), sha256(int8send(block_number - 1)), min(ts), count(*)
from settlements group by block_number;

-- name: heads()!
-- The chain's heads: the last blocks are not final yet.
insert into chain_heads (feed, head, finalized, indexed)
select 'settlement', max(number), max(number) - 60, max(number) from chain_blocks;

-- name: contract()!
-- The one contract that settles.
insert into chain_contracts (contract_key, address, name) overriding system value values (1, '\x0101010101010101010101010101010101010101', 'exchange');

-- name: watch(account_id, wallets)!
-- The busiest wallets, watched by an account.
insert into wallets_watched (account_id, wallet, blocks)
select :account_id, substr(sha256(('wallet ' || n)::bytea), 1, 20), '{[0,)}' from generate_series(1, :wallets::integer) as n;

-- name: settle#
-- Triggers again.
reset session_replication_role;
