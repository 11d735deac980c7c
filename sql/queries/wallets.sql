-- Wallets, as the API shows them.

-- name: hold_watching()$
-- Waits for blocks that are being written, and makes later ones wait, in a statement of its own, before `watch` reads.
select pg_advisory_xact_lock(hashtextextended('presage.watching', 0))::text;

-- name: watch(account_id, wallet, most)$
-- Starts storing a wallet's activity from the next block on; null if the account watches the maximum already.
insert into wallets_watched as w (account_id, wallet, blocks)
select :account_id, :wallet, int8multirange(int8range((select coalesce(max(head), -1) + 1 from chain_heads), null))
where (select count(*) from wallets_watched o where o.account_id = :account_id and o.unwatched_at is null and o.wallet <> :wallet) < :most
on conflict (account_id, wallet) do update set
    watched_at = case when w.unwatched_at is null then w.watched_at else now() end, unwatched_at = null,
    blocks = case when w.unwatched_at is null then w.blocks else w.blocks + excluded.blocks end
returning true;

-- name: unwatch(account_id, wallet)!
-- Stops storing it from the next block on, whoever else watches it. Stored activity stays until it expires.
update wallets_watched
set unwatched_at = now(), blocks = blocks * int8multirange(int8range(null, (select coalesce(max(head), -1) from chain_heads), '[]'))
where account_id = :account_id and wallet = :wallet and unwatched_at is null;

-- name: watched(account_id)$
-- The wallets that an account watches, in the order in which it began to.
select json_build_object(
    'wallets', coalesce(json_agg('0x' || encode(wallet, 'hex') order by watched_at, wallet), '[]'), 'count', count(*)
)::text
from wallets_watched
where account_id = :account_id and unwatched_at is null;

-- Lists of a wallet's history are walked by cursor: `before_ts, before_block, before_log, before_maker` is the last row shown, or an
-- instant and numbers below all others to begin with. `token_keys` are those of one market, or null for all.

-- name: watching(account_id, wallet)^
-- Whether an account watches a wallet now, and whether anything may have been stored for it.
select unwatched_at is null, not isempty(blocks) from wallets_watched where account_id = :account_id and wallet = :wallet;

-- name: traded(wallet, market_key)^
-- A market's tokens as the chain names them, and when a wallet traded them first and last, as far as positions have come and unless
-- some are to be recomputed. Later trades are looked up from `done_ts` on.
select
    coalesce(array_agg(k.token_key), '{}'), min(p.first_trade), max(p.last_trade),
    (select done_ts from positions_head where not exists (select from positions_due where wallet = :wallet))
from tokens t
join chain_tokens k using (token_id)
left join wallet_positions p on not p.base and p.wallet = :wallet and p.token_key = k.token_key
where t.market_key = :market_key;

-- name: traded_since(wallet, token_keys, since)$
-- Whether a wallet has traded tokens since an instant.
select exists (select from wallet_fills where wallet = :wallet and ts >= :since and token_key = any(:token_keys::int[]));

-- name: activity(account_id, wallet, since, token_keys, before_ts, before_block, before_log, before_maker, limit)
-- The stored activity of a wallet in the blocks in which the account watched it, newest first.
with newest as materialized (
    select a.*
    from wallet_activity a
    where a.wallet = :wallet and a.ts >= :since and a.ts <= :before_ts
        and (a.ts, a.block_number, a.log_index, not a.is_taker)
            < (:before_ts, :before_block::bigint, :before_log::integer, :before_maker::boolean)
        and (:token_keys::int[] is null or a.token_key = any(:token_keys::int[]))
        and a.block_number <@ (select blocks from wallets_watched where account_id = :account_id and wallet = :wallet)
    order by a.ts desc, a.block_number desc, a.log_index desc, a.is_taker
    limit :limit
)
select
    a.ts, a.block_number, a.log_index, not a.is_taker,
    extended(
        onchain_record(
            a.tx_hash, a.log_index, a.block_number, b.hash, p.market_id, k.token_id, p.outcome,
            case when a.is_taker then a.counterparty else a.wallet end,
            case when a.is_taker then a.wallet else a.counterparty end,
            a.side, a.price, a.size, a.value_usd, a.fee_usd, c.address, a.is_taker and a.match_index is not null,
            coalesce(a.block_number <= (select max(finalized) from chain_heads), false), a.ts
        ),
        json_build_object(
            'address', '0x' || encode(a.wallet, 'hex'),
            'role', case when a.is_taker then 'taker' else 'maker' end,
            'price_matched', a.price is not null
        )
    )
from newest a
join chain_tokens k on k.token_key = a.token_key
join chain_contracts c on c.contract_key = a.contract_key
left join chain_blocks b on b.number = a.block_number
left join lateral (
    select m.market_id, t.outcome from tokens t join markets m using (market_key) where t.token_id = k.token_id
) as p on true
order by a.ts desc, a.block_number desc, a.log_index desc, a.is_taker;

-- name: onchain_span(wallet, since, token_keys, before_ts, before_block, before_log, before_maker, limit)^
-- The time span of a page of a wallet's fills, read first, so that the next query is planned for its few chunks alone.
select min(ts), max(ts)
from (
    select ts from wallet_fills
    where wallet = :wallet and ts >= :since and ts <= :before_ts
        and (ts, block_number, log_index, not is_taker)
            < (:before_ts, :before_block::bigint, :before_log::integer, :before_maker::boolean)
        and (:token_keys::int[] is null or token_key = any(:token_keys::int[]))
    order by ts desc
    limit :limit
) as newest;

-- name: onchain(wallet, from_ts, to_ts, token_keys, before_ts, before_block, before_log, before_maker, limit)
-- A wallet's fills as they were settled, the newest first; `from_ts` and `to_ts` are their span.
with newest as materialized (
    select f.*
    from wallet_fills f
    where f.wallet = :wallet and f.ts between :from_ts and :to_ts
        and (f.ts, f.block_number, f.log_index, not f.is_taker)
            < (:before_ts, :before_block::bigint, :before_log::integer, :before_maker::boolean)
        and (:token_keys::int[] is null or f.token_key = any(:token_keys::int[]))
    order by f.ts desc, f.block_number desc, f.log_index desc, f.is_taker
    limit :limit
)
select
    f.ts, f.block_number, f.log_index, not f.is_taker,
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
from newest f
cross join lateral (
    select * from settlements s
    where s.ts between :from_ts and :to_ts and s.ts = f.ts and s.block_number = f.block_number and s.log_index = f.log_index
    offset 0
) as s
join chain_tokens k on k.token_key = f.token_key
join chain_contracts c on c.contract_key = s.contract_key
left join chain_blocks b on b.number = f.block_number
left join lateral (
    select m.market_id, t.outcome from tokens t join markets m using (market_key) where t.token_id = k.token_id
) as p on true
left join lateral (
    select m.maker from settlements m
    where s.is_taker_order and m.ts between :from_ts and :to_ts and m.ts = f.ts and m.block_number = f.block_number and m.match_index = f.log_index
        and m.log_index <> f.log_index
    order by m.value_usd desc, m.log_index limit 1
) as other on true
order by f.ts desc, f.block_number desc, f.log_index desc, f.is_taker;

-- name: summary(account_id, wallet)$
-- All fills of a wallet, counted.
select json_build_object(
    'address', '0x' || encode(:wallet, 'hex'),
    'watching', exists (
        select from wallets_watched where account_id = :account_id and wallet = :wallet and unwatched_at is null
    ),
    'trades', coalesce(sum(p.buys + p.sells), 0),
    'volume_usd', coalesce(as_number(sum(p.bought_usd + p.sold_usd)::bigint), 0),
    'buys', json_build_object('count', coalesce(sum(p.buys), 0), 'volume_usd', coalesce(as_number(sum(p.bought_usd)::bigint), 0)),
    'sells', json_build_object('count', coalesce(sum(p.sells), 0), 'volume_usd', coalesce(as_number(sum(p.sold_usd)::bigint), 0)),
    'markets', count(distinct coalesce(t.market_key, -p.token_key)) filter (where p.last_trade is not null),
    'first_seen', as_ms(min(p.first_trade)),
    'last_seen', as_ms(max(p.last_trade)),
    'note', (select note from wallet_coverage)
)::text
from positions_now(:wallet) p
join chain_tokens k using (token_key)
left join tokens t using (token_id);

-- name: note()$
-- The blocks and instants that all data on wallets is based on.
select note from wallet_coverage;

-- name: markets(wallet, since, until, market_key, before_ts, before_key, limit)
-- The outcomes that a wallet traded, the one traded last first.
select
    p.last_trade, p.token_key,
    json_build_object(
        'market_id', m.market_id, 'outcome', t.outcome, 'outcome_name', m.outcomes[t.outcome + 1], 'token_id', k.token_id,
        'question', m.question, 'slug', m.slug, 'status', m.status,
        'bought', as_number(p.bought), 'sold', as_number(p.sold), 'net_position', as_number(p.held),
        'bought_usd', as_number(p.bought_usd), 'sold_usd', as_number(p.sold_usd),
        'trades', p.buys + p.sells, 'first_trade', as_ms(p.first_trade), 'last_trade', as_ms(p.last_trade)
    )::text
from (
    select p.*
    from positions_now(:wallet) p
    where p.last_trade >= :since and p.last_trade < :until and (p.last_trade, -p.token_key) < (:before_ts, -(:before_key::integer))
        and (
            :market_key::integer is null
            or p.token_key in (select k.token_key from tokens t join chain_tokens k using (token_id) where t.market_key = :market_key::integer)
        )
    order by p.last_trade desc, p.token_key
    limit :limit
) as p
join chain_tokens k using (token_key)
left join tokens t using (token_id)
left join markets m using (market_key)
order by p.last_trade desc, p.token_key;

-- name: open_positions(wallet)$
-- The outcomes that a wallet holds, by all that is known, the one traded last first.
with shown as (
    select
        market_id, outcome, (select m.outcomes[p.outcome + 1] from markets m where m.market_id = p.market_id) as outcome_name,
        token_id, question, slug, status, as_number(bought) as bought, as_number(sold) as sold, as_number(held) as net_position,
        as_number(round(cost_usd * 1000000 / nullif(covered, 0))::bigint) as avg_cost,
        as_number(mark) as mark_price, mark_source, as_number(round(held::numeric * mark / 1000000)::bigint) as value_usd,
        left_out = 0 as has_cost_basis, trades, as_ms(p.last_trade) as last_trade
    from marked_positions(:wallet) p
    where held > 0
    order by p.last_trade desc nulls last, token_id
)
select json_build_object(
    'address', '0x' || encode(:wallet, 'hex'),
    'data', coalesce(json_agg(shown), '[]'),
    'count', count(*),
    'source', 'settlements',
    'note', (select note from wallet_coverage)
)::text
from shown;

-- name: pnl(wallet)$
-- What a wallet has earned with each outcome, and with all whose cost is known.
with rows as materialized (
    select
        *,
        realized_usd + case when settled then covered::numeric * mark / 1000000 - cost_usd else 0 end as realized,
        case when settled or covered = 0 then 0 else covered::numeric * mark / 1000000 - cost_usd end as unrealized,
        left_out = 0 as known
    from marked_positions(:wallet)
),
shown as (
    select
        market_id, outcome, (select m.outcomes[p.outcome + 1] from markets m where m.market_id = p.market_id) as outcome_name,
        token_id, question, slug, as_number(bought) as bought, as_number(sold) as sold, as_number(held) as net_position,
        as_number(round(cost_usd * 1000000 / nullif(covered, 0))::bigint) as avg_cost,
        as_number(round(realized)::bigint) as realized_pnl, as_number(round(unrealized)::bigint) as unrealized_pnl,
        as_number(mark) as mark_price, mark_source, settled, known as has_cost_basis
    from rows p
    order by last_trade desc nulls last, token_id
)
select json_build_object(
    'address', '0x' || encode(:wallet, 'hex'),
    'data', coalesce((select json_agg(shown) from shown), '[]'),
    'count', count(*),
    'total_realized_pnl', coalesce(as_number(round(sum(realized) filter (where known))::bigint), 0),
    'total_unrealized_pnl', coalesce(as_number(round(sum(unrealized) filter (where known))::bigint), 0),
    'total_pnl', coalesce(as_number(round(sum(realized + coalesce(unrealized, 0)) filter (where known))::bigint), 0),
    'markets_missing_cost_basis', count(distinct coalesce(market_id, token_id)) filter (where not known),
    'note', (select note from wallet_coverage)
        || case
            when exists (select from positions_due where wallet = :wallet)
                then ' Older rows of this wallet have just come in: they are counted within minutes.'
            else ''
        end
)::text
from rows;

-- name: leaderboard(span, by, limit)$
-- The first rows of a board.
select json_build_object(
    'window', :span::text, 'by', :by::text,
    'data', coalesce(json_agg(json_build_object(
        'rank', rank, 'address', '0x' || encode(wallet, 'hex'), 'volume_usd', as_number(volume_usd), 'trades', trades,
        'markets', markets, 'pnl_usd', as_number(pnl_usd), 'window_pnl_usd', as_number(window_pnl_usd)
    ) order by rank), '[]'),
    'count', count(*),
    'window_start', as_ms(min(window_start)),
    'computed_at', as_unix(max(computed_at)),
    'note', (select note from wallet_coverage)
)::text
from leaderboards
where span = :span and by = :by and rank <= :limit;
