-- Settlements for benchmarks, generated in sets: `matches` of a maker and a taker, two rows each, over `days`; wallet 0 is in a share
-- of them, other wallets less often the higher their number. Deterministic: the same numbers make the same rows.

-- name: catalogue(markets)!
-- Markets, every fourth resolved.
insert into markets (market_id, slug, question, status, outcomes, token_ids, outcome_prices, created_at, resolved_at)
select
    '0x' || lpad(to_hex(n), 64, '0'), 'market-' || n, 'Will number ' || n || ' come?', case when mod(n, 4) = 0 then 'RESOLVED' else 'ACTIVE' end,
    '{Yes,No}', array[(n * 2)::text, (n * 2 + 1)::text],
    case when mod(n, 4) = 0 then '{1000000,0}'::bigint[] else array[mod(n * 7919, 900000) + 50000, 950000 - mod(n * 7919, 900000)] end,
    now() - interval '30 days', case when mod(n, 4) = 0 then now() - interval '1 hour' end
from generate_series(1, :markets) as n;

-- name: tokens()!
-- Their tokens.
insert into tokens (token_id, market_key, outcome)
select token, market_key, place - 1 from markets, unnest(token_ids) with ordinality as t (token, place);

-- name: chain_tokens()!
-- The same, as the chain numbers them.
insert into chain_tokens (token_id) select token_id from tokens order by token_id;

-- name: contract()!
-- The exchange contract.
insert into chain_contracts (address, name) values (decode(repeat('ee', 20), 'hex'), 'exchange');

-- name: prices()!
-- Their prices.
insert into live_prices (market_key, outcome, bid, ask, mid, ts)
select market_key, o, outcome_prices[o + 1] - 10000, outcome_prices[o + 1] + 10000, outcome_prices[o + 1], now()
from markets, generate_series(0, 1) as o
where status = 'ACTIVE';

-- name: prepare(start_block, blocks, matches, wallets, tokens)!
-- Wallet numbers are distributed so that a few have most fills; 2 of 5 matches are wallet 0's.
create unlogged table bench_matches as
select
    n, :start_block::bigint + n * :blocks::bigint / :matches::bigint as block, mod(n, 64)::int * 2 as log,
    k.token_key, case when mod(n, 5) < 2 then 0 else floor(power(:wallets::float8, mod(n * 48271, 2147483647) / 2147483647.0))::int end as maker,
    floor(power(:wallets::float8, mod(n * 16807, 2147483647) / 2147483647.0))::int as taker,
    mod(n * 9973, 900000) + 50000 as price, (mod(n * 104729, 500) + 1) * 1000000 as size, case when mod(n * 31, 3) = 0 then -1 else 1 end as side
from generate_series(0, :matches::bigint - 1) as n
join chain_tokens k on k.token_key = mod(n * 7907, :tokens::bigint) + 1;

-- name: blocks(start, start_block)!
-- The blocks of the matches.
insert into chain_blocks (number, hash, parent, ts, logs)
select number, sha256(number::text::bytea), sha256((number - 1)::text::bytea), :start::timestamptz + (number - :start_block) * interval '1.5 seconds', 2
from (select distinct block as number from bench_matches) as b;

-- name: settlements(start, start_block, since, until)!
-- The rows of some matches.
insert into settlements (
    ts, block_number, log_index, match_index, tx_hash, contract_key, token_key, maker, taker, side, price, size, value_usd, fee_usd,
    is_taker_order, counted
)
select
    :start::timestamptz + (block - :start_block) * interval '1.5 seconds', block, log + own, log + 1, sha256(n::text::bytea), 1, token_key,
    decode(lpad(to_hex(case own when 0 then maker else taker end), 40, '0'), 'hex'),
    case own when 0 then decode(lpad(to_hex(taker), 40, '0'), 'hex') else decode(repeat('ee', 20), 'hex') end,
    case own when 0 then side else -side end, price, size, price * size / 1000000, 0, own = 1, own = 1
from bench_matches, generate_series(0, 1) as own
where n >= :since and n < :until;

-- name: fills(start, start_block, since, until)!
-- The same by wallet.
insert into wallet_fills (wallet, ts, block_number, log_index, is_taker, token_key, side, price, size, value_usd, fee_usd)
select
    decode(lpad(to_hex(case own when 0 then maker else taker end), 40, '0'), 'hex'),
    :start::timestamptz + (block - :start_block) * interval '1.5 seconds', block, log + own, own = 1, token_key,
    case own when 0 then side else -side end, price, size, price * size / 1000000, 0
from bench_matches, generate_series(0, 1) as own
where n >= :since and n < :until;

-- name: head()!
-- The chain's head, the last 200 blocks provisional.
insert into chain_heads (feed, head, finalized, indexed)
select 'settlement', max(number), max(number) - 200, max(number) from chain_blocks;

-- name: ranges()!
-- All blocks are indexed.
insert into chain_ranges (from_block, to_block, logs) select min(number), max(number), sum(logs) from chain_blocks;

-- name: watch(account_id)!
-- An account that watches the first hundred wallets.
insert into wallets_watched (account_id, wallet, blocks)
select :account_id, decode(lpad(to_hex(n), 40, '0'), 'hex'), '{[0,)}' from generate_series(0, 99) as n;

-- name: activity()!
-- A week of activity of the first hundred wallets, as if watched.
insert into wallet_activity (
    wallet, ts, block_number, log_index, is_taker, match_index, tx_hash, contract_key, token_key, counterparty, side, price, size,
    value_usd, fee_usd
)
select
    wallet, ts, block_number, log_index, is_taker, log_index, sha256(block_number::text::bytea), 1, token_key,
    decode(repeat('ab', 20), 'hex'), side, price, size, value_usd, fee_usd
from wallet_fills
where wallet in (select wallet from wallets_watched) and ts > now() - interval '7 days';

-- name: done()!
-- Drop the matches, which only the rows above need.
drop table bench_matches;
