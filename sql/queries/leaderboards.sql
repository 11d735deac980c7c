-- Leaderboards by volume and profit, written once a minute. A window ends now; a wallet's trades in it are counted since the
-- window's start.

-- name: forget_board(span, by)!
-- Clears a board; it is rewritten as a whole.
delete from leaderboards where span = :span and by = :by;

-- name: volume_of_hours(span, since, most, now)!
-- The wallets with most volume since an hour.
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
-- The wallets with most volume since the start of a day.
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
-- The wallets with most volume overall.
insert into leaderboards (span, by, rank, wallet, volume_usd, trades, markets, computed_at)
select
    'all', 'volume', row_number() over (order by volume_usd desc, wallet), wallet, volume_usd, buys + sells, 0, :now
from (select * from wallet_totals order by volume_usd desc, wallet limit :most) as most;

-- name: reached()^
-- Up to which block positions have come, and the block and instant from which on all rows that changed them are kept.
select done, base_block, base_ts from positions_head;

-- name: pnl_boards(span, since, kept_since, done, base_block, most, now)!
-- Two boards of a window. `pnl`: what the positions that were traded in it have earned since they were opened, realized and not.
-- `window_pnl`: what a wallet earned within it, realized and by the change of what its positions are worth: for every position, what came
-- in for it within the window, less what was paid, plus what it is worth now, less what it was worth at the start. That is the profit of now
-- less the profit of then. Positions with something left out of their cost count nowhere; a window's profit is null where nothing tells what
-- a position was or is worth, or while positions are to be made anew.
with flows as materialized (
    select wallet, token_key, sum(shares)::float8 as shares, sum(usd)::float8 as usd
    from (
        select wallet, token_key, side * size as shares, -side * value_usd - fee_usd as usd
        from wallet_fills
        where ts >= :kept_since::timestamptz and block_number > :base_block and block_number <= :done
        union all
        select wallet, token_key, shares, -sign(shares) * usd
        from position_changes
        where ts >= :kept_since::timestamptz and block_number > :base_block and block_number <= :done
    ) as moves
    group by wallet, token_key
),
marks as materialized (
    select k.token_key, t.market_key, t.outcome,
        case when m.status = 'RESOLVED' and m.resolved_at <= :kept_since::timestamptz then m.outcome_prices[t.outcome + 1] end as settled_before,
        case
            when m.status = 'RESOLVED' then m.outcome_prices[t.outcome + 1]
            else coalesce(market_price(p.bid, p.ask, p.mid, p.last), m.outcome_prices[t.outcome + 1])
        end::float8 as price
    from chain_tokens k
    join tokens t using (token_id)
    join markets m using (market_key)
    left join live_prices p on p.market_key = t.market_key and p.outcome = t.outcome
),
stood as materialized (
    -- Millions of positions: doubles, which are wrong by far less than the millionth that is shown.
    select p.wallet, token_key, p.last_trade, p.held::float8 as held, p.held - coalesce(f.shares, 0) as held_before,
        coalesce(f.usd, 0) as came_in, f.wallet is not null as moved, p.realized_usd::float8 as realized,
        case when p.covered > 0 then p.covered::float8 * k.price / 1000000 - p.cost_usd::float8 else 0 end as unrealized,
        case when p.held <> 0 then p.held::float8 * k.price / 1000000 else 0 end as worth
    from wallet_positions p
    left join flows f using (wallet, token_key)
    left join marks k using (token_key)
    where not p.base and p.left_out = 0
),
-- A token's price as the window began: its payout if it had one, or the middle of its best prices, or the last trade of it or, from the
-- other side, of the other of two outcomes.
begun as materialized (
    select k.token_key, coalesce(k.settled_before, market_price(q.bid, q.ask, q.mid, c.close), c.close)::float8 as price
    from (select distinct token_key from stood where held_before <> 0 and :since::timestamptz is not null) as s
    join marks k using (token_key)
    left join lateral (
        select bid, ask, mid from quotes
        where market_key = k.market_key and outcome = k.outcome
            and ts < :kept_since::timestamptz and ts >= :kept_since::timestamptz - interval '24 hours'
        order by ts desc limit 1
    ) as q on k.settled_before is null
    left join lateral (
        select case when own then close else 1000000 - close end as close
        from (
            (
                select bucket, close, true as own from candles_1h
                where market_key = k.market_key and outcome = k.outcome
                    and bucket < :kept_since::timestamptz and bucket >= :kept_since::timestamptz - interval '30 days'
                order by bucket desc limit 1
            )
            union all
            (
                select bucket, close, false from candles_1h
                where market_key = k.market_key and outcome = 1 - k.outcome
                    and (select cardinality(m.outcomes) = 2 from markets m where m.market_key = k.market_key)
                    and bucket < :kept_since::timestamptz and bucket >= :kept_since::timestamptz - interval '30 days'
                order by bucket desc limit 1
            )
        ) as closes
        order by bucket desc, own desc limit 1
    ) as c on k.settled_before is null
),
earned as materialized (
    select s.wallet,
        sum(realized + coalesce(unrealized, 0)) filter (
            where last_trade >= coalesce(:since::timestamptz, '-infinity')
        ) as pnl,
        bool_or(moved or held <> 0 or :since::timestamptz is null) as there,
        case
            when bool_or(gain.usd is null) or exists (select from positions_due d where d.wallet = s.wallet) then null
            else sum(gain.usd)
        end as window_pnl
    from stood s
    left join begun b using (token_key)
    cross join lateral (
        select case
            when :since::timestamptz is null then realized + unrealized
            else came_in + worth - case when held_before = 0 then 0 else held_before * b.price / 1000000 end
        end as usd
    ) as gain
    group by s.wallet
),
ranked as (
    (
        select 'pnl' as by, :since::timestamptz as since, row_number() over (order by pnl desc, wallet) as rank, wallet, pnl, window_pnl
        from earned where pnl is not null order by rank limit :most
    )
    union all
    (
        select
            'window_pnl', case when :since::timestamptz is not null then :kept_since::timestamptz end,
            row_number() over (order by window_pnl desc, wallet) as rank, wallet, pnl, window_pnl
        from earned where window_pnl is not null and there order by rank limit :most
    )
)
insert into leaderboards (span, by, rank, wallet, volume_usd, trades, markets, pnl_usd, window_pnl_usd, window_start, computed_at)
select
    :span, r.by, r.rank, r.wallet, coalesce(v.volume_usd, 0), coalesce(v.trades, 0), 0, round(r.pnl), round(r.window_pnl), r.since, :now
from ranked r
left join lateral (
    select sum(volume_usd) as volume_usd, sum(trades) as trades
    from wallet_hours where :span = '1d' and wallet = r.wallet and hour >= r.since
    union all
    select sum(volume_usd), sum(trades)
    from wallet_days where :span in ('7d', '30d') and wallet = r.wallet and day >= (r.since at time zone 'UTC')::date
    union all
    select volume_usd, buys + sells from wallet_totals where :span = 'all' and wallet = r.wallet
) as v on v.volume_usd is not null;

-- name: count_markets(by, span)!
-- In how many markets each wallet of the boards traded in the board's window: those it traded last since the window's start.
with traded as materialized (
    select p.wallet, coalesce(t.market_key, -p.token_key) as market, max(p.last_trade) as last_trade
    from (select distinct wallet from leaderboards where by = :by and (:span::text is null or span = :span)) as w
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
    where b.by = :by and (:span::text is null or b.span = :span)
    group by 1, 2
) as c
where b.by = :by and b.span = c.span and b.wallet = c.wallet;

-- name: pnl_due(span, every, rest, now, asked)$
-- Whether the boards by profit of a window are due: none yet, older than a request for them, or older than `every` and than `rest`
-- times what the last ones took.
select not coalesce(
    computed_at >= coalesce(:asked::timestamptz, '-infinity') and computed_at > :now::timestamptz - greatest(
        :every::interval,
        :rest::integer * (select (value ->> :span)::float8 from settings where name = 'pnl_boards_took_s') * interval '1 second'
    ),
    false
)
from (select max(computed_at) as computed_at from leaderboards where by in ('pnl', 'window_pnl') and span = :span) as last;

-- name: note_took(span, seconds)!
-- How long the boards by profit of a window took.
insert into settings (name, value) values ('pnl_boards_took_s', jsonb_build_object(:span::text, :seconds::float8))
on conflict (name) do update set value = settings.value || excluded.value, updated_at = now();

-- name: head(span, by, most)
-- The first rows of a board, for the run's page.
select rank, '0x' || encode(wallet, 'hex'), volume_usd, trades, markets from leaderboards
where span = :span and by = :by and rank <= :most
order by rank;
