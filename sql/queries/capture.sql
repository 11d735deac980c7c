-- Derived data written in the transaction that writes settlements, or reverts them: for watched wallets, for positions, and for
-- whale alerts. `numbers` are the blocks written.

-- name: share_watching()$
-- Makes new watchers of a wallet wait until this transaction's blocks are committed: activity is captured for those who watch
-- now.
select pg_advisory_xact_lock_shared(hashtextextended('presage.watching', 0))::text;

-- name: standing(numbers)^
-- How far positions have come, locked until the transaction ends; which instants the blocks span; what there is to do.
select
    h.claimed, s.first_ts, s.last_ts,
    exists (
        select from wallets_watched w
        where w.blocks && (select int8range(min(number), max(number), '[]') from unnest(:numbers::bigint[]) as number)
    ) as watched,
    exists (select from wallets_followed where until_at > now()) as followed,
    exists (
        select from ledger_entries e
        where e.block_number = any(:numbers::bigint[]) and e.ts between s.first_ts and s.last_ts
    ) as entries
from positions_head h
cross join (select min(ts) as first_ts, max(ts) as last_ts from chain_blocks where number = any(:numbers::bigint[])) as s
for share of h;

-- name: name_tokens(numbers, first_ts, last_ts)!
-- Tokens that ledger entries name for the first time. Sorted, so that two writers never deadlock.
insert into chain_tokens (token_id)
select distinct c.token_id collate "C"
from ledger_changes c
where c.block_number = any(:numbers::bigint[]) and c.ts between :first_ts and :last_ts
    and not exists (select from chain_tokens k where k.token_id = c.token_id)
order by 1
on conflict do nothing;

-- name: add_changes(numbers, first_ts, last_ts)!
-- Changes that the blocks' ledger entries made to each token of each wallet.
insert into position_changes (wallet, ts, block_number, log_index, entry, token_key, kind, shares, usd)
select c.wallet, c.ts, c.block_number, c.log_index, c.entry, k.token_key, c.kind, c.shares, c.usd
from ledger_changes c
join chain_tokens k using (token_id)
where c.block_number = any(:numbers::bigint[]) and c.ts between :first_ts and :last_ts
union all
select e.wallet, e.ts, e.block_number, e.log_index, e.entry, e.token_key, e.kind, e.amount, null
from ledger_entries e
where e.block_number = any(:numbers::bigint[]) and e.ts between :first_ts and :last_ts
    and e.kind = 'transfer' and e.wallet is not null and e.token_key is not null
on conflict do nothing;

-- name: share_redemptions(numbers, first_ts, last_ts, claimed)!
-- Revalues redemptions written before the resolution that these blocks contain; their positions are to be recomputed.
with shared as (
    update position_changes p
    set usd = c.usd
    from ledger_changes c
    join chain_tokens k using (token_id)
    where c.condition_id = any(array(
            select condition_id from ledger_entries
            where block_number = any(:numbers::bigint[]) and ts between :first_ts and :last_ts and kind = 'resolution'
        ))
        and c.kind = 'redeem' and c.ts >= :first_ts and c.block_number > (select base_block from positions_head)
        and p.wallet = c.wallet and p.ts = c.ts and p.ts >= :first_ts and p.block_number = c.block_number
        and p.log_index = c.log_index and p.entry = c.entry and p.token_key = k.token_key and p.usd is distinct from c.usd
    returning p.wallet, p.token_key, p.ts, p.block_number
)
insert into positions_due (wallet, token_key, ts)
select distinct wallet, token_key, date_trunc('hour', ts, 'UTC') from shared where block_number <= :claimed;

-- name: add_due(numbers, first_ts, last_ts, claimed)!
-- Positions whose past the blocks change: to be recomputed.
insert into positions_due (wallet, token_key, ts)
select distinct wallet, token_key, date_trunc('hour', ts, 'UTC')
from (
    select wallet, token_key, ts, block_number from wallet_fills
    where block_number = any(:numbers::bigint[]) and ts between :first_ts and :last_ts
    union all
    select wallet, token_key, ts, block_number from position_changes
    where block_number = any(:numbers::bigint[]) and ts between :first_ts and :last_ts
) as rows
where block_number <= :claimed and block_number > (select base_block from positions_head);

-- name: add_activity(numbers, first_ts, last_ts)!
-- The fills of watched wallets, stored for their watchers.
insert into wallet_activity (
    wallet, ts, block_number, log_index, is_taker, match_index, tx_hash, contract_key, token_key, counterparty, side, price, size,
    value_usd, fee_usd
)
select
    f.wallet, f.ts, f.block_number, f.log_index, f.is_taker, s.match_index, s.tx_hash, s.contract_key, f.token_key,
    case
        when not f.is_taker then s.taker
        when not s.is_taker_order then s.maker
        else coalesce((
            -- Of several makers, the one with the largest part.
            select m.maker from settlements m
            where m.block_number = s.block_number and m.ts = s.ts and m.match_index = s.log_index and m.log_index <> s.log_index
            order by m.value_usd desc, m.log_index limit 1
        ), s.taker)
    end,
    f.side, f.price, f.size, f.value_usd, f.fee_usd
from wallet_fills f
join settlements s on s.block_number = f.block_number and s.log_index = f.log_index and s.ts = f.ts
where f.block_number = any(:numbers::bigint[]) and f.ts between :first_ts and :last_ts
    and s.ts between :first_ts and :last_ts
    and exists (select from wallets_watched w where w.wallet = f.wallet and f.block_number <@ w.blocks)
on conflict do nothing;

-- name: published_activity(numbers, first_ts, last_ts)
-- The fills of wallets that are watched, or followed on the stream, as records: wallet, instant (ms), market, record.
select
    f.wallet, as_ms(f.ts), p.market_id,
    extended(
        onchain_record(
            s.tx_hash, f.log_index, f.block_number, b.hash, p.market_id, k.token_id, p.outcome,
            case when f.is_taker then coalesce(other.maker, s.maker) else s.maker end,
            case when f.is_taker then f.wallet else s.taker end,
            f.side, f.price, f.size, f.value_usd, f.fee_usd, c.address, s.is_taker_order,
            coalesce(f.block_number <= (select max(finalized) from chain_heads), false), f.ts
        ),
        json_build_object(
            'address', '0x' || encode(f.wallet, 'hex'),
            'role', case when f.is_taker then 'taker' else 'maker' end,
            'price_matched', f.price is not null
        )
    )
from wallet_fills f
join settlements s on s.block_number = f.block_number and s.log_index = f.log_index and s.ts = f.ts
join chain_tokens k on k.token_key = f.token_key
join chain_contracts c on c.contract_key = s.contract_key
left join chain_blocks b on b.number = f.block_number
left join lateral (
    select m.market_id, t.outcome from tokens t join markets m using (market_key) where t.token_id = k.token_id
) as p on true
left join lateral (
    select m.maker from settlements m
    where s.is_taker_order and m.block_number = s.block_number and m.ts = s.ts and m.match_index = s.log_index
        and m.log_index <> s.log_index
    order by m.value_usd desc, m.log_index limit 1
) as other on true
where f.block_number = any(:numbers::bigint[]) and f.ts between :first_ts and :last_ts
    and s.ts between :first_ts and :last_ts
    and (
        exists (
            select from wallets_watched w
            where w.wallet = f.wallet and w.unwatched_at is null and f.block_number <@ w.blocks
        )
        or exists (select from wallets_followed w where w.wallet = f.wallet and w.until_at > now())
    )
order by f.block_number, f.log_index, f.is_taker;

-- name: add_whales(numbers, first_ts, last_ts, least, threshold)
-- Settlements of at least a USD value as signals, those of known markets; returns instant (ms), market and record of the new
-- ones.
with added as (
    insert into signals (ts, market_key, outcome, signal_id, type, value, threshold, score, direction, window_s, detail)
    select
        s.ts, t.market_key, t.outcome,
        hashtextextended('whale_alert ' || encode(s.tx_hash, 'hex') || ' ' || s.log_index, 0), 'whale_alert',
        s.value_usd / 1000000.0::float8, :threshold::float8, s.value_usd / 1000000.0::float8 / :threshold::float8, s.side, 0,
        jsonb_build_object(
            'tx_hash', '0x' || encode(s.tx_hash, 'hex'), 'block_number', s.block_number, 'log_index', s.log_index,
            'wallet', '0x' || encode(s.maker, 'hex'), 'side', case when s.side > 0 then 'BUY' else 'SELL' end,
            'price', as_number(s.price), 'size', as_number(s.size)
        )
    from settlements s
    join chain_tokens k using (token_key)
    join tokens t using (token_id)
    where s.block_number = any(:numbers::bigint[]) and s.ts between :first_ts and :last_ts
        and s.counted and s.value_usd >= :least::bigint
    on conflict do nothing
    returning *
)
select as_ms(a.ts), m.market_id, json_build_object(
    'id', a.signal_id::text, 'type', a.type, 'market_id', m.market_id, 'outcome', a.outcome, 'value', a.value,
    'threshold', a.threshold, 'score', a.score, 'direction', case when a.direction > 0 then 'up' else 'down' end,
    'window_s', a.window_s, 'detail', a.detail, 'ts', as_ms(a.ts)
)::text
from added a
join markets m using (market_key)
order by a.ts, (a.detail ->> 'log_index')::int;

-- name: take_back_whales(numbers, first_ts, last_ts)
-- Deletes whale alerts of reverted blocks; returns instant (ms), market and record of each.
with gone as (
    delete from signals
    where type = 'whale_alert' and ts between :first_ts and :last_ts
        and (detail ->> 'block_number')::bigint = any(:numbers::bigint[])
    returning *
)
select as_ms(a.ts), m.market_id, json_build_object(
    'id', a.signal_id::text, 'type', a.type, 'market_id', m.market_id, 'outcome', a.outcome, 'value', a.value,
    'threshold', a.threshold, 'score', a.score, 'direction', case when a.direction > 0 then 'up' else 'down' end,
    'window_s', a.window_s, 'detail', a.detail, 'ts', as_ms(a.ts), 'revoked', true
)::text
from gone a
join markets m using (market_key)
order by a.ts, (a.detail ->> 'log_index')::int;

-- name: take_back_activity(numbers, first_ts, last_ts)!
-- Deletes what was stored for watched wallets of reverted blocks.
delete from wallet_activity
where block_number = any(:numbers::bigint[]) and ts between :first_ts and :last_ts;

-- name: take_back_changes(numbers, first_ts, last_ts)!
-- Deletes changes by ledger entries of reverted blocks.
delete from position_changes
where block_number = any(:numbers::bigint[]) and ts between :first_ts and :last_ts;
