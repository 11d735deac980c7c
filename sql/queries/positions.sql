-- Positions, updated by a job each minute from final blocks, each row once. Late rows make their positions due for
-- recomputation.

-- name: reached()^
-- How far settlements are final and without a hole, and how far positions have come; null while there is no chain.
select
    (select least(finalized, indexed) from chain_heads where feed = 'settlement'), h.done, h.done_ts, h.base_block, h.base_ts,
    (select count(*) from positions_due)
from positions_head h;

-- name: claim(block)$
-- From now on, rows written up to the block make their positions due; waits for current writers.
update positions_head set claimed = greatest(claimed, :block) returning claimed;

-- name: learn_markets()$
-- Changes that ledger entries made to the tokens of markets that the catalogue has learnt since; those positions are due.
-- Returns how many.
with met as (
    update positions_head h set market_key = coalesce((select max(market_key) from markets), 0)
    from positions_head old
    returning old.market_key as after
),
changes as (
    select c.*
    from met
    join markets m on m.market_key > met.after
    join ledger_changes c on c.condition_id = decode(substr(m.market_id, 3), 'hex')
    where m.market_id ~ '^0x[0-9a-f]{64}$' and not c.seen
),
named as (
    insert into chain_tokens (token_id)
    select distinct token_id collate "C" from changes order by 1
    on conflict do nothing
    returning token_id, token_key
),
added as (
    insert into position_changes (wallet, ts, block_number, log_index, entry, token_key, kind, shares, usd)
    select c.wallet, c.ts, c.block_number, c.log_index, c.entry, coalesce(n.token_key, k.token_key), c.kind, c.shares, c.usd
    from changes c
    left join named n using (token_id)
    left join chain_tokens k using (token_id)
    on conflict do nothing
    returning wallet, token_key, ts, block_number
),
due as (
    insert into positions_due (wallet, token_key, ts)
    select wallet, token_key, ts from added where block_number <= (select done from positions_head)
)
select count(*) from added;

-- name: slice_end(done, claimed, rows, since)$
-- The block up to which one transaction covers about this many fills.
select coalesce(
    (
        select block_number from wallet_fills
        where block_number > :done and block_number <= :claimed and ts >= :since
        order by block_number offset :rows limit 1
    ),
    :claimed::bigint
);

-- name: make_slice()#
-- Temporary tables of the connection: the rows of some blocks, and the due positions in progress.
create temp table if not exists slice (
    wallet bytea, token_key int, ts timestamptz, block_number bigint, log_index int, entry smallint,
    shares bigint, usd numeric, side smallint, size bigint, value_usd bigint
);
create temp table if not exists taken (due_id bigint, wallet bytea, token_key int, ts timestamptz);

-- name: empty_slice()#
-- Clears them for the next transaction.
truncate slice, taken;

-- name: fill_slice(done, until, since)!
-- The rows of the blocks after one and up to another.
insert into slice
select
    wallet, token_key, ts, block_number, log_index, is_taker::int, side * size,
    case when price is not null then value_usd + side * fee_usd end, side, size, value_usd
from wallet_fills
where block_number > :done and block_number <= :until and ts >= :since
union all
select wallet, token_key, ts, block_number, log_index, entry, shares, usd, null, null, null
from position_changes
where block_number > :done and block_number <= :until and ts >= :since;

-- name: analyze_slice#
-- Analyses the tables, as plans depend on their size.
analyze slice;
analyze taken;

-- name: advance_positions(base)!
-- Updates each position with its new rows.
insert into wallet_positions as p (
    base, wallet, token_key, buys, bought, bought_usd, sells, sold, sold_usd, held, covered, cost_usd, realized_usd, left_out,
    first_trade, last_trade
)
select
    :base, wallet, token_key, buys, bought, bought_usd, sells, sold, sold_usd, at[1], at[2], at[3], at[4], at[5], first_trade, last_trade
from (
    select
        r.wallet, r.token_key,
        count(*) filter (where side > 0) as buys, coalesce(sum(size) filter (where side > 0), 0) as bought,
        coalesce(sum(value_usd) filter (where side > 0), 0) as bought_usd,
        count(*) filter (where side < 0) as sells, coalesce(sum(size) filter (where side < 0), 0) as sold,
        coalesce(sum(value_usd) filter (where side < 0), 0) as sold_usd,
        min(ts) filter (where side is not null) as first_trade, max(ts) filter (where side is not null) as last_trade,
        position_of(
            shares, usd, case when k.wallet is not null then array[k.held, k.covered, k.cost_usd, k.realized_usd, k.left_out] end
            order by block_number, log_index, entry
        ) as at
    from slice r
    left join wallet_positions k on k.base = :base and k.wallet = r.wallet and k.token_key = r.token_key
    group by r.wallet, r.token_key
) as moved
on conflict (base, wallet, token_key) do update set
    buys = p.buys + excluded.buys, bought = p.bought + excluded.bought, bought_usd = p.bought_usd + excluded.bought_usd,
    sells = p.sells + excluded.sells, sold = p.sold + excluded.sold, sold_usd = p.sold_usd + excluded.sold_usd,
    held = excluded.held, covered = excluded.covered, cost_usd = excluded.cost_usd, realized_usd = excluded.realized_usd,
    left_out = excluded.left_out, first_trade = least(p.first_trade, excluded.first_trade),
    last_trade = greatest(p.last_trade, excluded.last_trade);

-- name: advance_totals()!
-- Updates each wallet's totals with its new trades.
insert into wallet_totals as t (wallet, buys, bought_usd, sells, sold_usd, volume_usd, first_trade, last_trade)
select
    wallet, count(*) filter (where side > 0), coalesce(sum(value_usd) filter (where side > 0), 0),
    count(*) filter (where side < 0), coalesce(sum(value_usd) filter (where side < 0), 0), sum(value_usd), min(ts), max(ts)
from slice
where side is not null
group by wallet
on conflict (wallet) do update set
    buys = t.buys + excluded.buys, bought_usd = t.bought_usd + excluded.bought_usd,
    sells = t.sells + excluded.sells, sold_usd = t.sold_usd + excluded.sold_usd,
    volume_usd = t.volume_usd + excluded.volume_usd, first_trade = least(t.first_trade, excluded.first_trade),
    last_trade = greatest(t.last_trade, excluded.last_trade);

-- name: advance_hours(since)!
-- Updates each wallet's hours; those of the last two days only.
insert into wallet_hours as h (hour, wallet, volume_usd, trades)
select date_trunc('hour', ts, 'UTC'), wallet, sum(value_usd), count(*)
from slice
where side is not null and ts >= :since
group by 1, 2
on conflict (hour, wallet) do update set volume_usd = h.volume_usd + excluded.volume_usd, trades = h.trades + excluded.trades;

-- name: advance_days()!
-- Updates each wallet's days.
insert into wallet_days as d (day, wallet, volume_usd, trades)
select (ts at time zone 'UTC')::date, wallet, sum(value_usd), count(*)
from slice
where side is not null
group by 1, 2
on conflict (day, wallet) do update set volume_usd = d.volume_usd + excluded.volume_usd, trades = d.trades + excluded.trades;

-- name: finish_slice(until)!
-- Records that positions include all rows up to the block. Last of all: writers of settlements wait for whoever locks this row.
update positions_head
set done = :until,
    from_block = least(from_block, (select min(block_number) from slice)), from_ts = least(from_ts, (select min(ts) from slice)),
    done_ts = coalesce((select ts from chain_blocks where number <= :until order by number desc limit 1), done_ts);

-- name: take_due(most, rows)$
-- Takes the entries that have been due longest, whole positions with about this many fills in all, and at least one; returns how many
-- entries that is. A wallet's positions come together: they are found by the wallet.
with oldest as (
    select wallet, token_key, min(due_id) as due_id
    from (select due_id, wallet, token_key from positions_due order by due_id limit :most) as first
    group by wallet, token_key
),
ordered as (select *, min(due_id) over (partition by wallet) as first_id from oldest),
sized as (
    select
        o.wallet, o.token_key,
        sum(1 + coalesce(p.buys + p.sells, 0) - coalesce(b.buys + b.sells, 0)) over (
            order by o.first_id, o.wallet, o.due_id rows between unbounded preceding and 1 preceding
        ) as before
    from ordered o
    left join wallet_positions p on not p.base and p.wallet = o.wallet and p.token_key = o.token_key
    left join wallet_positions b on b.base and b.wallet = o.wallet and b.token_key = o.token_key
),
picked as (
    insert into taken
    select d.due_id, d.wallet, d.token_key, d.ts
    from sized s
    join positions_due d using (wallet, token_key)
    where coalesce(s.before, 0) < :rows
    returning 1
)
select count(*) from picked;

-- name: fill_due(done)!
-- All rows of these positions that no base has, up to a block, in the same table as a slice.
insert into slice
select
    wallet, token_key, ts, block_number, log_index, is_taker::int, side * size,
    case when price is not null then value_usd + side * fee_usd end, side, size, value_usd
from (select distinct wallet, token_key from taken) as t
join wallet_fills f using (wallet, token_key)
where block_number <= :done and block_number > (select base_block from positions_head) and ts >= (select base_ts from positions_head)
union all
select wallet, token_key, ts, block_number, log_index, entry, shares, usd, null, null, null
from (select distinct wallet, token_key from taken) as t
join position_changes c using (wallet, token_key)
where block_number <= :done and block_number > (select base_block from positions_head) and ts >= (select base_ts from positions_head);

-- name: forget_due_positions()!
-- Deletes the due positions, to recompute them from the beginning.
delete from wallet_positions p
using (select distinct wallet, token_key from taken) as t
where not p.base and p.wallet = t.wallet and p.token_key = t.token_key;

-- name: begin_due_positions()!
-- Or from their bases, where their oldest rows were dropped.
insert into wallet_positions (
    base, wallet, token_key, buys, bought, bought_usd, sells, sold, sold_usd, held, covered, cost_usd, realized_usd, left_out,
    first_trade, last_trade
)
select
    false, wallet, token_key, buys, bought, bought_usd, sells, sold, sold_usd, held, covered, cost_usd, realized_usd, left_out,
    first_trade, last_trade
from (select distinct wallet, token_key from taken) as t
join wallet_positions p using (wallet, token_key)
where p.base;

-- name: forget_due_hours()!
-- The hours in which something changed.
delete from wallet_hours h using (select distinct wallet, date_trunc('hour', ts, 'UTC') as hour from taken) as t
where h.wallet = t.wallet and h.hour = t.hour;

-- name: remake_hours(since, done)!
-- The same hours, recomputed from all rows of the wallet in them, up to a block.
insert into wallet_hours (hour, wallet, volume_usd, trades)
select t.hour, t.wallet, sum(f.value_usd), count(*)
from (select distinct wallet, date_trunc('hour', ts, 'UTC') as hour from taken where ts >= :since) as t
join wallet_fills f on f.wallet = t.wallet and f.ts >= t.hour and f.ts < t.hour + interval '1 hour'
where f.ts >= :since and f.block_number <= :done and f.block_number > (select base_block from positions_head)
group by 1, 2;

-- name: forget_due_days()!
-- The days in which something changed.
delete from wallet_days d using (select distinct wallet, (ts at time zone 'UTC')::date as day from taken) as t
where d.wallet = t.wallet and d.day = t.day;

-- name: remake_days(done)!
-- The same days, recomputed from all rows of the wallet in them, up to a block.
insert into wallet_days (day, wallet, volume_usd, trades)
select (t.day at time zone 'UTC')::date, t.wallet, sum(f.value_usd), count(*)
from (select distinct wallet, date_trunc('day', ts, 'UTC') as day from taken) as t
join wallet_fills f on f.wallet = t.wallet and f.ts >= t.day and f.ts < t.day + interval '1 day'
where
    f.block_number <= :done
    and f.block_number > (select base_block from positions_head) and f.ts >= (select base_ts from positions_head)
group by 1, 2;

-- name: forget_due_totals()!
-- The totals of the wallets.
delete from wallet_totals t using (select distinct wallet from taken) as c where t.wallet = c.wallet;

-- name: remake_totals()!
-- The same totals, recomputed from the positions.
insert into wallet_totals (wallet, buys, bought_usd, sells, sold_usd, volume_usd, first_trade, last_trade)
select
    wallet, sum(buys), sum(bought_usd), sum(sells), sum(sold_usd), sum(bought_usd + sold_usd), min(first_trade), max(last_trade)
from (select distinct wallet from taken) as changed
join wallet_positions using (wallet)
where not base and last_trade is not null
group by wallet;

-- name: finish_due()!
-- Removes them from the due entries; those that have become due since stay.
with gone as (delete from positions_due d using taken t where d.due_id = t.due_id)
update positions_head
set from_block = least(from_block, (select min(block_number) from slice)), from_ts = least(from_ts, (select min(ts) from slice));

-- name: base_end(before)$
-- The last block before an instant, as far as positions have come; null where there is none.
select max(number) from chain_blocks
where ts < :before and number > (select base_block from positions_head) and number <= (select done from positions_head);

-- name: finish_base(until)!
-- Records that the bases include all rows up to the block.
update positions_head
set base_block = :until, base_ts = (select ts from chain_blocks where number <= :until order by number desc limit 1);

-- name: end_pass(hours_before, days_before)!
-- Ends a pass. Hours and days that no leaderboard reads any more are deleted.
with hours as (delete from wallet_hours where hour < :hours_before),
days as (delete from wallet_days where day < (:days_before::timestamptz at time zone 'UTC')::date)
update positions_head set computed_at = now();

-- name: last_pass()^
-- When the last pass ended; and whether there is a chain to compute positions from.
select (select computed_at from positions_head), exists (select from chain_heads where feed = 'settlement');
