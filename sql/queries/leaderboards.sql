-- Who traded most and who earned most, written once a minute. A window ends now; what a wallet traded in it is what it traded last
-- since the window's start.

-- name: forget_board(span, by)!
-- A board is written whole.
delete from leaderboards where span = :span and by = :by;

-- name: volume_of_hours(span, since, most, now)!
-- Those who traded most since an hour.
insert into leaderboards (span, by, rank, wallet, volume_usd, trades, markets, window_start, computed_at)
select
    :span, 'volume', row_number() over (order by volume_usd desc, wallet), wallet, volume_usd, trades, 0, :since, :now
from (
    select wallet, sum(volume_usd) as volume_usd, sum(trades) as trades
    from wallet_hours
    where hour >= :since
    group by wallet
    order by 2 desc, 1
    limit :most
) as most;

-- name: volume_of_days(span, since, most, now)!
-- Those who traded most since the start of a day.
insert into leaderboards (span, by, rank, wallet, volume_usd, trades, markets, window_start, computed_at)
select
    :span, 'volume', row_number() over (order by volume_usd desc, wallet), wallet, volume_usd, trades, 0, :since, :now
from (
    select wallet, sum(volume_usd) as volume_usd, sum(trades) as trades
    from wallet_days
    where day >= (:since::timestamptz at time zone 'UTC')::date
    group by wallet
    order by 2 desc, 1
    limit :most
) as most;

-- name: volume_of_all(most, now)!
-- Those who traded most in all that is known.
insert into leaderboards (span, by, rank, wallet, volume_usd, trades, markets, computed_at)
select
    'all', 'volume', row_number() over (order by volume_usd desc, wallet), wallet, volume_usd, buys + sells, 0, :now
from (select * from wallet_totals order by volume_usd desc, wallet limit :most) as most;

-- name: pnl_boards(day, week, month, most, now)!
-- Those whose positions traded in a window have earned most, realized and not, at what they are worth now; of all four windows, in one
-- reading of the positions. Positions with something left out of their cost count nowhere.
with marks as materialized (
    select k.token_key,
        case
            when m.status = 'RESOLVED' then m.outcome_prices[t.outcome + 1]
            else coalesce(market_price(p.bid, p.ask, p.mid, p.last), m.outcome_prices[t.outcome + 1])
        end as price
    from chain_tokens k
    join tokens t using (token_id)
    join markets m using (market_key)
    left join live_prices p on p.market_key = t.market_key and p.outcome = t.outcome
),
earned as materialized (
    select p.wallet,
        sum(e.pnl) filter (where p.last_trade >= :day) as day, sum(e.pnl) filter (where p.last_trade >= :week) as week,
        sum(e.pnl) filter (where p.last_trade >= :month) as month, sum(e.pnl) as whole
    from wallet_positions p
    left join marks k using (token_key)
    cross join lateral (
        -- Millions of positions: doubles, which are wrong by far less than the millionth that is shown.
        select p.realized_usd::float8
            + case when p.covered > 0 then coalesce(p.covered::float8 * k.price / 1000000 - p.cost_usd::float8, 0) else 0 end as pnl
    ) as e
    where not p.base and p.left_out = 0 and p.last_trade is not null
    group by p.wallet
),
ranked as (
    (select '1d' as span, :day::timestamptz as since, wallet, day as pnl from earned where day is not null order by day desc, wallet limit :most)
    union all
    (select '7d', :week, wallet, week from earned where week is not null order by week desc, wallet limit :most)
    union all
    (select '30d', :month, wallet, month from earned where month is not null order by month desc, wallet limit :most)
    union all
    (select 'all', null, wallet, whole from earned order by whole desc, wallet limit :most)
)
insert into leaderboards (span, by, rank, wallet, volume_usd, trades, markets, pnl_usd, window_start, computed_at)
select
    r.span, 'pnl', row_number() over (partition by r.span order by r.pnl desc, r.wallet), r.wallet,
    coalesce(v.volume_usd, 0), coalesce(v.trades, 0), 0, round(r.pnl), r.since, :now
from ranked r
left join lateral (
    select sum(volume_usd) as volume_usd, sum(trades) as trades
    from wallet_hours where r.span = '1d' and wallet = r.wallet and hour >= r.since
    union all
    select sum(volume_usd), sum(trades)
    from wallet_days where r.span in ('7d', '30d') and wallet = r.wallet and day >= (r.since at time zone 'UTC')::date
    union all
    select volume_usd, buys + sells from wallet_totals where r.span = 'all' and wallet = r.wallet
) as v on v.volume_usd is not null;

-- name: count_markets(by)!
-- In how many markets each wallet of the boards traded in the board's window: those it traded last since the window's start.
with traded as materialized (
    select p.wallet, coalesce(t.market_key, -p.token_key) as market, max(p.last_trade) as last_trade
    from (select distinct wallet from leaderboards where by = :by) as w
    join wallet_positions p on not p.base and p.wallet = w.wallet and p.last_trade is not null
    join chain_tokens k using (token_key)
    left join tokens t using (token_id)
    group by 1, 2
)
update leaderboards b set markets = c.markets
from (
    select b.span, b.wallet, count(*) as markets
    from leaderboards b
    join traded t on t.wallet = b.wallet and t.last_trade >= coalesce(b.window_start, '-infinity')
    where b.by = :by
    group by 1, 2
) as c
where b.by = :by and b.span = c.span and b.wallet = c.wallet;

-- name: last_pnl()$
-- When the boards by profit were last written.
select max(computed_at) from leaderboards where by = 'pnl';

-- name: head(span, by, most)
-- The first rows of a board, for the run's page.
select rank, '0x' || encode(wallet, 'hex'), volume_usd, trades, markets from leaderboards
where span = :span and by = :by and rank <= :most
order by rank;
