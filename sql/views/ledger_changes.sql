-- What splits, merges, conversions and redemptions did to each token of a wallet, and what was paid or got for it (micro-USD).
-- The tokens are those whose transfers the decoder saw in the same transaction; without them, those of the market in the catalogue.
--   split, merge: the collateral is shared evenly by the outcomes.
--   redeem: the payout is shared as the resolution says; by shares alone while that is not known.
--   convert: of m outcomes of an event each costs 1/m, so what is given up (m - 1)/m; that leaves exactly the collateral paid out.
create view ledger_changes as
select
    e.block_number, e.ts, e.log_index, e.entry, e.wallet, e.kind, e.condition_id, e.detail ? 'tokens' as seen,
    moved.token_id, moved.shares,
    round(
        case
            when e.kind = 'convert' and moved.shares < 0 then -moved.shares * (moved.n - 1)::numeric / moved.n
            when e.kind = 'convert' then moved.shares::numeric / moved.n
            when moved.all_weight > 0 then e.amount * moved.weight / moved.all_weight
            else e.amount * abs(moved.shares)::numeric / nullif(moved.all_shares, 0)
        end,
        12
    ) as usd
from ledger_entries e
cross join lateral (
    select
        w.token_id, w.shares, w.weight, count(*) over () as n,
        sum(w.weight) over () as all_weight, sum(abs(w.shares)) over () as all_shares
    from (
        select m.token_id, m.shares, abs(m.shares) * case when e.kind = 'redeem' then m.payout else 1 end as weight
        from (
            select
                t.token_id, t.shares,
                coalesce(
                    (
                        select (r.detail -> 'numerators' ->> k.outcome)::numeric
                            / nullif((select sum(n::numeric) from jsonb_array_elements_text(r.detail -> 'numerators') as n), 0)
                        from ledger_entries r
                        where r.condition_id = e.condition_id and r.kind = 'resolution'
                        order by r.ts desc limit 1
                    ),
                    (
                        select k.price / 1000000.0
                        where k.status = 'RESOLVED'
                    )
                ) as payout
            from (
                -- One operation may burn a token in several movements.
                select each ->> 0 as token_id, sum((each ->> 1)::bigint)::bigint as shares
                from jsonb_array_elements(e.detail -> 'tokens') as each
                where e.detail ? 'tokens'
                group by 1
                union all
                select token_id, case e.kind when 'split' then e.amount else -e.amount end
                from markets, unnest(token_ids, outcome_prices) as o (token_id, price)
                where not e.detail ? 'tokens' and market_id = '0x' || encode(e.condition_id, 'hex') and token_id is not null
                    -- Of a redemption it is known only that the winner's shares are as many as the dollars.
                    and (e.kind in ('split', 'merge') or (e.kind = 'redeem' and status = 'RESOLVED' and price = 1000000))
            ) as t
            left join lateral (
                select k.outcome::int as outcome, m.status, m.outcome_prices[k.outcome + 1] as price
                from tokens k join markets m using (market_key)
                where k.token_id = t.token_id
            ) as k on true
            where t.shares <> 0
        ) as m
    ) as w
) as moved
where e.kind in ('split', 'merge', 'convert', 'redeem') and e.wallet is not null;
