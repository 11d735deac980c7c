-- Figures of one outcome as of a past instant, small enough for the planner to inline. All read from up to 24 hours before.

-- The earliest price sample of a window: a quote, or without one a trade.
create function earliest_price(of_market integer, of_outcome smallint, since timestamptz, until timestamptz)
returns table (price bigint)
language sql stable parallel safe
as $$
    select coalesce(
        (
            select q.mid from quotes q
            where q.market_key = of_market and q.outcome = of_outcome and q.ts >= since and q.ts < until
                and market_price(q.bid, q.ask, q.mid, null) is not null
            order by q.ts limit 1
        ),
        (
            select t.price from trades t
            where t.market_key = of_market and t.outcome = of_outcome and t.ts >= since and t.ts < until
            order by t.ts, t.seq limit 1
        )
    )
$$;

-- The spread over a window, weighted by time: micro-units times milliseconds, and milliseconds with both sides. A quote
-- stands until the next one.
create function spread_over(of_market integer, of_outcome smallint, since timestamptz, until timestamptz)
returns table (spread_ms bigint, two_sided_ms bigint)
language sql stable parallel safe
as $$
    select sum((ask - bid) * lasted)::bigint, coalesce(sum(lasted) filter (where ask is not null and bid is not null), 0)::bigint
    from (
        select q.bid, q.ask, as_ms(lead(q.ts, 1, until) over (order by q.ts)) - as_ms(greatest(q.ts, since)) as lasted
        from quotes q
        where q.market_key = of_market and q.outcome = of_outcome and q.ts < until
            and q.ts >= since - interval '24 hours' -- said apart, so that older chunks are left shut
            and q.ts >= coalesce(
                (
                    select p.ts from quotes p
                    where p.market_key = of_market and p.outcome = of_outcome and p.ts <= since
                        and p.ts >= since - interval '24 hours'
                    order by p.ts desc limit 1
                ),
                since
            )
    ) as stood
$$;

-- What the five best levels hold.
create function best_five(sizes bigint[]) returns double precision
language sql immutable parallel safe
return (coalesce(sizes[1], 0) + coalesce(sizes[2], 0) + coalesce(sizes[3], 0) + coalesce(sizes[4], 0)
    + coalesce(sizes[5], 0))::double precision;

-- How a book leans: bids less asks over both, in shares of the five best levels, as micro-units; null while a side is empty.
create function lean(bids double precision, asks double precision) returns double precision
language sql immutable parallel safe
return case when bids > 0 and asks > 0 then round((bids - asks) * 1000000 / (bids + asks)) end;

-- How the newest books of a window lean, at most five: the sum, and how many have both sides.
create function newest_leans(of_market integer, of_outcome smallint, since timestamptz, until timestamptz)
returns table (lean_sum bigint, books bigint)
language sql stable parallel safe
as $$
    select coalesce(sum(lean(bids, asks)), 0)::bigint, count(lean(bids, asks))
    from (
        select best_five(e.bid_sizes) as bids, best_five(e.ask_sizes) as asks
        from book_events e
        where e.market_key = of_market and e.outcome = of_outcome and e.side is null and e.ts >= since and e.ts < until
        order by e.ts desc, e.seq desc
        limit 5
    ) as newest
$$;

-- How a book leaned before: the first book of each of the six ten-minute stretches of an hour.
create function hourly_leans(of_market integer, of_outcome smallint, since timestamptz)
returns table (lean_sum bigint, books bigint)
language sql stable parallel safe
as $$
    select coalesce(sum(lean(bids, asks)), 0)::bigint, count(lean(bids, asks))
    from generate_series(0, 5) as stretch
    cross join lateral (
        select best_five(e.bid_sizes) as bids, best_five(e.ask_sizes) as asks
        from book_events e
        where e.market_key = of_market and e.outcome = of_outcome and e.side is null
            and e.ts >= since + stretch * interval '10 minutes' and e.ts < since + (stretch + 1) * interval '10 minutes'
        order by e.ts, e.seq
        limit 1
    ) as first
$$;
