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
