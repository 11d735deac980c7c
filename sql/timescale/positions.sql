-- What a wallet's rows of one token come to, by average cost: `position_of(shares, usd, opening order by …)`. It is the one place where
-- profit and loss are computed, for the job that keeps positions and for the requests that add what came since.
--
-- A position is {held, covered, cost, realized, left out}: shares held by all that is known; those of them whose cost is known, and that
-- cost; what was earned by those that went; how many rows were left out. Money is in micro-USD to twelve decimals: a division is off by
-- 10^-12 of a micro-dollar at most, and no later one makes it more.

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

-- An on-chain trade as the API shows it. Small enough to be inlined, so that nothing is computed for rows that are not shown.
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

-- What moved a wallet's positions after positions_head.done: fills, and what the ledger did. Both are few, and found by the wallet.
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

-- A wallet's positions right now: those kept, with what came since.
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

-- The same with their market, and with what a share is worth: what it was resolved to, or else its price, or else what the exchange
-- last said of it.
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
