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

create function best_five(sizes bigint[]) returns double precision
language sql immutable parallel safe
return (coalesce(sizes[1], 0) + coalesce(sizes[2], 0) + coalesce(sizes[3], 0) + coalesce(sizes[4], 0)
    + coalesce(sizes[5], 0))::double precision;

create function lean(bids double precision, asks double precision) returns double precision
language sql immutable parallel safe
return case when bids > 0 and asks > 0 then round((bids - asks) * 1000000 / (bids + asks)) end;

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

create function settled_by(token text, traded_at timestamptz, tx bytea, traded bigint) returns table (maker text, taker text, makers json, block_number bigint)
language sql stable parallel safe
as $$
    with key as materialized (
        select token_key from chain_tokens where token_id = token
    ),
    found as materialized (
        select s.ts, s.block_number
        from settlements s
        where s.token_key = (select token_key from key) and s.tx_hash = tx
            and s.ts >= traded_at - interval '1 minute' and s.ts < traded_at + interval '1 hour'
        order by s.ts
        limit 1
    ),
    own as materialized (
        select s.*
        from found f
        join settlements s on s.ts = f.ts and s.token_key = (select token_key from key) and s.block_number = f.block_number
        where s.tx_hash = tx
        order by s.size = traded and s.is_taker_order desc, s.size = traded desc, s.is_taker_order desc, s.log_index
        limit 1
    ),
    matched as materialized (
        select s.log_index, s.maker, s.value_usd, s.is_taker_order
        from own
        join settlements s on s.block_number = own.block_number and s.ts = own.ts and s.match_index = own.match_index
    )
    select
        '0x' || encode(coalesce(
            (select m.maker from matched m where not m.is_taker_order order by m.value_usd desc, m.log_index limit 1), own.maker
        ), 'hex'),
        '0x' || encode(coalesce((select m.maker from matched m where m.is_taker_order limit 1), own.taker), 'hex'),
        coalesce(
            (
                select json_agg('0x' || encode(each.maker, 'hex') order by each.log_index)
                from (
                    select m.maker, min(m.log_index) as log_index from matched m where not m.is_taker_order group by m.maker
                ) as each
            ),
            json_build_array('0x' || encode(own.maker, 'hex'))
        ),
        own.block_number
    from own
$$;

create function coverage_record(
    kind text, status text, held tstzmultirange, missing tstzmultirange, open bigint, fillable bigint, lost bigint, filled bigint, reconciled_to date
) returns json
language sql stable parallel safe
return json_build_object(
    'kind', kind,
    'status', status,
    'from_ts', as_ms(lower(held)),
    'to_ts', as_ms(upper(held)),
    'spans', (
        select coalesce(json_agg(json_build_object('from_ts', as_ms(lower(span)), 'to_ts', as_ms(upper(span))) order by span desc), '[]')
        from (select span from unnest(held) as span order by span desc limit 100) as newest
    ),
    'missing_s', (
        select coalesce(sum(extract(epoch from upper(part) - lower(part))), 0)::double precision from unnest(held * coalesce(missing, '{}')) as part
    ),
    'gaps', json_build_object('open', open, 'fillable', fillable, 'lost', lost, 'filled', filled),
    'reconciled_to', reconciled_to
);

create function coverage_gap(
    id text, kind text, market_id text, from_ts timestamptz, to_ts timestamptz, cause text, status text, filled_at timestamptz, filled_by text,
    added bigint, fault text, from_block bigint, to_block bigint
) returns text
language sql stable parallel safe
return json_build_object(
    'id', id, 'kind', kind, 'market_id', market_id, 'from_ts', as_ms(from_ts), 'to_ts', as_ms(to_ts), 'cause', cause, 'status', status,
    'filled_at', as_unix(filled_at), 'filled_by', filled_by, 'added', added, 'fault', fault, 'from_block', from_block, 'to_block', to_block
)::text;

create function gap_span(from_ts timestamptz, to_ts timestamptz) returns tstzrange
language sql stable parallel safe
return tstzrange(from_ts, greatest(from_ts, coalesce(to_ts, now())), '[]');

create view book_records as
select
    b.market_key, b.outcome,
    (
        select row_to_json(r)
        from (
            select
                m.market_id,
                b.outcome,
                m.token_ids[b.outcome + 1] as token_id,
                coalesce(bids.levels, '[]') as bids,
                coalesce(asks.levels, '[]') as asks,
                as_number(b.bid_prices[1]) as best_bid,
                as_number(b.ask_prices[1]) as best_ask,
                as_number(b.bid_prices[1]::bigint + b.ask_prices[1]) / 2 as mid,
                as_number(b.ask_prices[1] - b.bid_prices[1]) as spread,
                as_number(div(bids.worth + asks.worth, 1000000)::bigint) as depth_usd,
                as_number(b.tick_size) as tick_size,
                nullif(encode(b.hash, 'hex'), '') as hash,
                b.seq::text as seq,
                as_ms(b.ts) as ts
        ) as r
    ) as record
from live_books b
join markets m using (market_key)
cross join lateral (
    select
        json_agg((select l from (select as_number(price) as price, as_number(size) as size) as l)) as levels,
        coalesce(sum(price::numeric * size), 0) as worth
    from unnest(b.bid_prices, b.bid_sizes) as level (price, size)
) as bids
cross join lateral (
    select
        json_agg((select l from (select as_number(price) as price, as_number(size) as size) as l)) as levels,
        coalesce(sum(price::numeric * size), 0) as worth
    from unnest(b.ask_prices, b.ask_sizes) as level (price, size)
) as asks
where b.verified;

create view chain_holes as
select
    -from_block as place, format('blocks %s-%s', from_block, to_block) as id, 'settlements' as kind, null::int as market_key,
    coalesce(below, above) as from_ts, above as to_ts, 'not indexed yet' as cause, 'fillable' as status, null::timestamptz as filled_at,
    null::text as filled_by, 0::bigint as added, null::text as fault, from_block, to_block
from (
    select
        lower(hole) as from_block, upper(hole) - 1 as to_block,
        (select ts from chain_blocks where number < lower(hole) order by number desc limit 1) as below,
        coalesce((select ts from chain_blocks where number >= upper(hole) order by number limit 1), now()) as above
    from (
        select
            greatest(
                least((detail ->> 'start')::bigint, (select min(from_block) from chain_ranges)), (detail ->> 'floor')::bigint
            ) as first,
            indexed
        from chain_heads
        where feed = 'settlement'
    ) as followed
    cross join lateral unnest(
        case when first <= indexed then int8multirange(int8range(first, indexed, '[]')) else '{}' end
        - (select coalesce(range_agg(int8range(from_block, to_block, '[]')), '{}') from chain_ranges)
    ) as hole
) as holes;

create view coverage_gap_records as
select
    gap_id as place, gap_id::text as id, kind, market_key, from_ts, to_ts, cause,
    case
        when filled_at is not null then 'filled'
        when to_ts is null then 'open'
        when kind = 'trades' then 'fillable'
        else 'lost'
    end as status,
    filled_at, filled_by,
    coalesce((detail ->> 'trades')::bigint, 0) + coalesce((detail ->> 'events')::bigint, 0) as added,
    detail ->> 'fault' as fault,
    null::bigint as from_block, null::bigint as to_block
from coverage_gaps
union all
select * from chain_holes;

create view coverage_held as
with live as (
    select
        tstzmultirange(tstzrange(
            since, greatest(since, last_data_at, to_timestamp((detail ->> 'written_ms')::bigint / 1000.0)), '[]'
        )) as recorded
    from (
        select
            coalesce(
                (select to_timestamp((value #>> '{}')::bigint / 1000.0) from settings where name = 'recorded_since'),
                (select ts from feed_stats where feed = 'polymarket' and messages > 0 order by ts limit 1)
            ) as since,
            last_data_at, detail
        from stage_clocks
        where stage = 'ingestion'
    ) as began
    where since is not null
),
kept as (
    select
        hypertable_name as name, tstzmultirange(tstzrange(min(range_start), null)) as since
    from timescaledb_information.chunks
    where hypertable_schema = 'public' and hypertable_name in ('trades', 'book_events')
    group by 1
)
select
    'trades' as kind, 'ingestion' as stage,
    (
        coalesce((select recorded from live), '{}')
        + coalesce((
            select range_agg(tstzrange(day::timestamp at time zone 'UTC', (day + 1)::timestamp at time zone 'UTC'))
            from coverage_days
            where coverage_days.kind = 'trades'
        ), '{}')
    ) * coalesce((select since from kept where name = 'trades'), '{}') as held
union all
select
    'books', 'ingestion',
    coalesce((select recorded from live), '{}') * coalesce((select since from kept where name = 'book_events'), '{}')
union all
select
    'settlements', 'settlement',
    coalesce(range_agg(tstzrange(
        (select ts from chain_blocks where number >= r.from_block order by number limit 1),
        (select ts from chain_blocks where number <= r.to_block order by number desc limit 1),
        '[]'
    )), '{}')
from chain_ranges r
where exists (select from chain_blocks where number between r.from_block and r.to_block);

create view delivery_records as
select
    d.delivery_id, d.webhook_id, w.account_id, d.state, d.created_at, d.number,
    json_build_object(
        'id', d.delivery_id,
        'webhook_id', d.webhook_id,
        'message_id', 'msg_' || replace(d.delivery_id::text, '-', ''),
        'type', d.type,
        'seq', d.seq,
        'state', d.state,
        'attempts', d.attempts,
        'next_at', as_unix(d.next_at),
        'created_at', as_unix(d.created_at),
        'ended_at', as_unix(d.ended_at),
        'log', d.log,
        'payload', d.body::json
    ) as record
from webhook_deliveries d
join webhooks w using (webhook_id);

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

                select each ->> 0 as token_id, sum((each ->> 1)::bigint)::bigint as shares
                from jsonb_array_elements(e.detail -> 'tokens') as each
                where e.detail ? 'tokens'
                group by 1
                union all
                select token_id, case e.kind when 'split' then e.amount else -e.amount end
                from markets, unnest(token_ids, outcome_prices) as o (token_id, price)
                where not e.detail ? 'tokens' and market_id = '0x' || encode(e.condition_id, 'hex') and token_id is not null

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

create view market_records as
select
    market_key, market_id, gamma_id, slug, question, status, exchange, event_id, event_title, category, series, tags, end_time, created_at,
    (
        select row_to_json(r)
        from (
            select
                market_id,
                slug,
                question,
                status,
                exchange,
                event_id,
                category,
                series,
                tags,
                outcomes,
                token_ids,
                array(select as_number(price) from unnest(outcome_prices) as o (price)) as outcome_prices,
                as_unix(start_time) as start_time,
                as_unix(end_time) as end_time,
                as_unix(created_at) as created_at,
                as_unix(resolved_at) as resolved_at,
                winning_outcome,
                as_number(volume_usd) as volume_usd,
                as_number(volume_24h_usd) as volume_24h_usd,
                as_number(liquidity_usd) as liquidity_usd,
                neg_risk,
                image,
                url,
                as_unix(updated_at) as updated_at,
                source
        ) as r
    ) as record
from markets;

create view pipeline_status as
select
    stage,
    case
        when lag_s is null then 'missing'
        when lag_s > fail_after_s or quality.worst = 'fail' then 'stale'
        when lag_s > warn_after_s or quality.worst = 'warn' then 'late'
        else 'fresh'
    end as status,
    last_data_at, beat_at, lag_s, warn_after_s, fail_after_s,
    case when quality.checks is null then detail else detail || jsonb_build_object('quality', quality.checks) end as detail,
    detail ? 'off' as off
from (

    select *, case when since is not null then greatest(0, date_part('epoch', now() - since)) end as lag_s
    from (
        select
            stage, last_data_at, beat_at, detail,
            case stage when 'discovery' then beat_at else last_data_at end as since,

            coalesce(jsonb_path_query_first(warn.value, 'strict $ ? (@ >= 1 && @ <= 604800)')::int, warn_after_s) as warn_after_s,
            coalesce(jsonb_path_query_first(fail.value, 'strict $ ? (@ >= 1 && @ <= 604800)')::int, fail_after_s) as fail_after_s
        from stage_clocks
        left join settings as warn on warn.name = 'parameters.' || stage || '_warn_after_s'
        left join settings as fail on fail.name = 'parameters.' || stage || '_fail_after_s'
    ) as clocks
) as late

left join (
    select
        stage, min(severity) as worst,
        jsonb_object_agg(
            suite || '.' || name, jsonb_build_object('severity', severity, 'rows', rows_failed, 'failed_at', as_unix(failed_at))
        ) as checks
    from quality_checks
    where rows_failed > 0 or counts_until > now()
    group by stage
) as quality using (stage);

create view price_records as
select
    p.market_key, p.outcome,
    (
        select row_to_json(r)
        from (
            select
                m.market_id,
                p.outcome,
                m.token_ids[p.outcome + 1] as token_id,
                as_number(p.mid) as mid,
                as_number(p.bid) as bid,
                as_number(p.ask) as ask,
                as_number(p.ask - p.bid) as spread,
                as_number(p.bid_size) as bid_size,
                as_number(p.ask_size) as ask_size,
                as_number(p.last) as last,
                as_ms(p.last_ts) as last_ts,
                (select as_number(sum(value_usd)::bigint) from market_stats_24h s where s.market_key = p.market_key) as volume_24h_usd,
                as_ms(p.ts) as ts,
                greatest(0, as_ms(now()) - as_ms(p.ts)) as age_ms
        ) as r
    ) as record
from live_prices p
join markets m using (market_key);

create view ranked_markets as
select
    a.market_key, a.value_1h, a.trades_1h, a.value_24h, a.trades_24h, a.value_7d, a.trades_7d, a.spike_ratio, a.price_move,
    m.market_id, m.slug, m.question, m.event_title, m.status, m.exchange, m.record,
    (
        select row_to_json(r)
        from (
            select as_number(a.value_1h) as vol_1h, as_number(a.value_24h) as vol_24h, round(a.spike_ratio::numeric, 4)::float8 as spike_ratio
        ) as r
    ) as spike,
    (
        select row_to_json(r)
        from (
            select
                as_number(a.price_now) as price_now, as_number(a.price_baseline) as price_baseline, as_number(a.price_move) as price_move
        ) as r
    ) as move
from market_activity a
join market_records m using (market_key);

create view signal_records as
select
    s.market_key, s.outcome, s.ts, s.type, s.score, s.signal_id,
    signal_record(
        s.signal_id, s.type, m.market_id, s.outcome, s.value, s.threshold, s.score, s.direction, s.window_s, s.detail, s.ts
    ) as record
from signals s
join markets m using (market_key);

create view stats_records as
select
    market_key, outcome,
    (
        select row_to_json(r)
        from (
            select
                as_number(open) as open,
                as_number(high) as high,
                as_number(low) as low,
                as_number(close) as close,
                as_number(volume) as volume,
                as_number(value_usd) as volume_usd,
                trades,
                as_number(close - open) as price_change,
                round((close - open) * 100.0 / nullif(open, 0), 4)::double precision as price_change_pct,
                round(value_usd::numeric / nullif(volume, 0), 6)::double precision as vwap,
                as_ms(window_start) as window_start,
                as_ms(window_end) as window_end
        ) as r
    ) as record
from market_stats_24h;

create view wallet_coverage as
select
    case
        when r.from_block is null then 'No settlements have been indexed yet.'
        else format(
            'From what was settled on chain from block %s (%s) to block %s (%s)%s: fills, splits, merges, conversions, redemptions '
            'and transfers. What a wallet had before that is not known.',
            r.from_block, to_char(r.from_ts at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'),
            r.to_block, to_char(r.to_ts at time zone 'UTC', 'YYYY-MM-DD HH24:MI "UTC"'),
            case when r.holes > 0 then format(', without %s stretches in between that are not indexed', r.holes) else '' end
        )
    end as note
from (
    select

        least(h.from_block, c.from_block) as from_block, c.to_block, c.holes,
        least(h.from_ts, (select ts from chain_blocks where number >= c.from_block order by number limit 1)) as from_ts,
        (select ts from chain_blocks where number <= c.to_block order by number desc limit 1) as to_ts
    from positions_head h
    cross join (
        select min(from_block) as from_block, max(to_block) as to_block, count(*) - 1 as holes from chain_ranges
    ) as c
) as r;

create view webhook_records as
select
    webhook_id, account_id, number,
    json_build_object(
        'id', webhook_id,
        'url', url,
        'events', events,
        'markets', market_ids,
        'wallets', case when wallets is not null then (
            select json_agg('0x' || encode(wallet, 'hex') order by nth) from unnest(wallets) with ordinality as w (wallet, nth)
        ) end,
        'min_usd', as_number(min_usd),
        'enabled', disabled_at is null,
        'disabled_reason', disabled_reason,
        'disabled_at', as_unix(disabled_at),
        'rotating', next_secret is not null,
        'waiting', waiting,
        'next_at', case when disabled_at is null then as_unix(due_at) end,
        'created_at', as_unix(created_at),
        'updated_at', as_unix(updated_at)
    ) as record
from webhooks;

create schema analytics;

create view analytics.books as
select
    m.market_id, m.slug, b.outcome, m.outcomes[b.outcome + 1] as outcome_name, l.side, l.level,
    l.price * 0.000001 as price, l.size * 0.000001 as size, b.ts
from live_books b
join markets m using (market_key)
cross join lateral (
    select 'bid' as side, level, price, size from unnest(b.bid_prices, b.bid_sizes) with ordinality as bids (price, size, level)
    union all
    select 'ask', level, price, size from unnest(b.ask_prices, b.ask_sizes) with ordinality as asks (price, size, level)
) as l
where b.verified;

comment on view analytics.books is 'Order books as they stand now, one row a level; those in doubt are left out';

comment on column analytics.books.market_id is 'Market';

comment on column analytics.books.slug is 'Market, readable';

comment on column analytics.books.outcome is 'Number of the outcome, from 0';

comment on column analytics.books.outcome_name is 'Name of the outcome';

comment on column analytics.books.side is 'bid or ask';

comment on column analytics.books.level is '1 is the best price of its side';

comment on column analytics.books.price is 'USD a share, 0 to 1';

comment on column analytics.books.size is 'Shares at this price';

comment on column analytics.books.ts is 'When the exchange last changed the book, UTC';

create view analytics.candles_1h as
select
    c.bucket, m.market_id, m.slug, c.outcome, m.outcomes[c.outcome + 1] as outcome_name,
    c.open * 0.000001 as open, c.high * 0.000001 as high, c.low * 0.000001 as low, c.close * 0.000001 as close,
    c.volume * 0.000001 as volume, c.value_usd * 0.000001 as value_usd, c.trades
from candles_1h c
join markets m using (market_key);

comment on view analytics.candles_1h is 'Prices by the hour, one row an outcome and hour with trades; always say from when on (bucket)';

comment on column analytics.candles_1h.bucket is 'Start of the hour, UTC';

comment on column analytics.candles_1h.market_id is 'Market';

comment on column analytics.candles_1h.slug is 'Market, readable';

comment on column analytics.candles_1h.outcome is 'Number of the outcome, from 0';

comment on column analytics.candles_1h.outcome_name is 'Name of the outcome';

comment on column analytics.candles_1h.open is 'Price of the first trade';

comment on column analytics.candles_1h.high is 'Highest price';

comment on column analytics.candles_1h.low is 'Lowest price';

comment on column analytics.candles_1h.close is 'Price of the last trade';

comment on column analytics.candles_1h.volume is 'Shares traded';

comment on column analytics.candles_1h.value_usd is 'USD traded';

comment on column analytics.candles_1h.trades is 'How many trades';

create view analytics.candles_1m as
select
    c.bucket, m.market_id, m.slug, c.outcome, m.outcomes[c.outcome + 1] as outcome_name,
    c.open * 0.000001 as open, c.high * 0.000001 as high, c.low * 0.000001 as low, c.close * 0.000001 as close,
    c.volume * 0.000001 as volume, c.value_usd * 0.000001 as value_usd, c.trades
from candles_1m c
join markets m using (market_key);

comment on view analytics.candles_1m is 'Prices by the minute, one row an outcome and minute with trades; always say from when on (bucket)';

comment on column analytics.candles_1m.bucket is 'Start of the minute, UTC';

comment on column analytics.candles_1m.market_id is 'Market';

comment on column analytics.candles_1m.slug is 'Market, readable';

comment on column analytics.candles_1m.outcome is 'Number of the outcome, from 0';

comment on column analytics.candles_1m.outcome_name is 'Name of the outcome';

comment on column analytics.candles_1m.open is 'Price of the first trade';

comment on column analytics.candles_1m.high is 'Highest price';

comment on column analytics.candles_1m.low is 'Lowest price';

comment on column analytics.candles_1m.close is 'Price of the last trade';

comment on column analytics.candles_1m.volume is 'Shares traded';

comment on column analytics.candles_1m.value_usd is 'USD traded';

comment on column analytics.candles_1m.trades is 'How many trades';

create view analytics.coverage_gaps as
select g.kind, m.market_id, m.slug, g.from_ts, g.to_ts, g.cause, g.filled_at, g.filled_by
from coverage_gaps g
left join markets m using (market_key);

comment on view analytics.coverage_gaps is 'What is known to be missing, one row a gap';

comment on column analytics.coverage_gaps.kind is 'trades or books';

comment on column analytics.coverage_gaps.market_id is 'Market; null: all of them';

comment on column analytics.coverage_gaps.slug is 'Market, readable';

comment on column analytics.coverage_gaps.from_ts is 'Since when, UTC';

comment on column analytics.coverage_gaps.to_ts is 'Until when; null: still open';

comment on column analytics.coverage_gaps.cause is 'Why';

comment on column analytics.coverage_gaps.filled_at is 'When it was filled in; null: not yet, or never';

comment on column analytics.coverage_gaps.filled_by is 'By what';

create view analytics.markets as
select
    market_id, slug, question, status, category, event_id, event_title, series, tags, outcomes, token_ids,
    array(select price * 0.000001 from unnest(outcome_prices) as o (price)) as outcome_prices,
    start_time, end_time, created_at, closed_at, resolved_at, winning_outcome, outcomes[winning_outcome + 1] as winner,
    volume_usd * 0.000001 as volume_usd, volume_24h_usd * 0.000001 as volume_24h_usd, liquidity_usd * 0.000001 as liquidity_usd,
    tick_size * 0.000001 as tick_size, neg_risk, url, source, first_seen_at, updated_at
from markets;

comment on view analytics.markets is 'Every market that was ever seen, one row each';

comment on column analytics.markets.market_id is 'Condition id: 0x and 64 hex digits; what every other view names a market by';

comment on column analytics.markets.slug is 'Readable name in the exchange''s addresses';

comment on column analytics.markets.question is 'What is bet on';

comment on column analytics.markets.status is 'ACTIVE, CLOSED (no longer traded) or RESOLVED (paid out)';

comment on column analytics.markets.category is 'Lower case';

comment on column analytics.markets.event_id is 'The exchange''s id of the event that the market belongs to';

comment on column analytics.markets.event_title is 'The event in words';

comment on column analytics.markets.series is 'The series that the event belongs to';

comment on column analytics.markets.tags is 'Tags of the event';

comment on column analytics.markets.outcomes is 'Names of the outcomes; an outcome''s number counts from 0, arrays from 1';

comment on column analytics.markets.token_ids is 'Tokens of the outcomes, in the same order; decimal numbers as text';

comment on column analytics.markets.outcome_prices is 'Prices of the outcomes as the exchange told them last, 0 to 1; once resolved, what each pays';

comment on column analytics.markets.start_time is 'Planned start';

comment on column analytics.markets.end_time is 'Planned end';

comment on column analytics.markets.created_at is 'When the exchange listed it';

comment on column analytics.markets.closed_at is 'When it was closed';

comment on column analytics.markets.resolved_at is 'When it was resolved';

comment on column analytics.markets.winning_outcome is 'Number of the outcome that won, from 0; null when unknown or when the payout is shared';

comment on column analytics.markets.winner is 'Name of the outcome that won';

comment on column analytics.markets.volume_usd is 'USD ever traded, as the exchange counts it';

comment on column analytics.markets.volume_24h_usd is 'USD traded in 24 hours, as the exchange counted it last';

comment on column analytics.markets.liquidity_usd is 'USD in the order book, as the exchange counted it last';

comment on column analytics.markets.tick_size is 'Smallest step of the price';

comment on column analytics.markets.neg_risk is 'Whether the event''s markets share their collateral';

comment on column analytics.markets.url is 'Its page at the exchange';

comment on column analytics.markets.source is 'exchange, tape (recordings) or simulated';

comment on column analytics.markets.first_seen_at is 'When this service first heard of it';

comment on column analytics.markets.updated_at is 'When something stored of it last changed';

create view analytics.quotes as
select
    q.ts, m.market_id, m.slug, q.outcome, m.outcomes[q.outcome + 1] as outcome_name,
    q.bid * 0.000001 as bid, q.ask * 0.000001 as ask, q.mid * 0.000001 as mid, (q.ask - q.bid) * 0.000001 as spread,
    q.bid_size * 0.000001 as bid_size, q.ask_size * 0.000001 as ask_size
from quotes q
join markets m using (market_key);

comment on view analytics.quotes is 'Best prices, one row a change; each stands until the next; always say from when on (ts)';

comment on column analytics.quotes.ts is 'Since when, UTC';

comment on column analytics.quotes.market_id is 'Market';

comment on column analytics.quotes.slug is 'Market, readable';

comment on column analytics.quotes.outcome is 'Number of the outcome, from 0';

comment on column analytics.quotes.outcome_name is 'Name of the outcome';

comment on column analytics.quotes.bid is 'Best price that somebody would pay; null: nobody';

comment on column analytics.quotes.ask is 'Best price that somebody would sell for; null: nobody';

comment on column analytics.quotes.mid is 'Middle of the two';

comment on column analytics.quotes.spread is 'ask less bid';

comment on column analytics.quotes.bid_size is 'Shares wanted at the bid when it became the best; null when unknown';

comment on column analytics.quotes.ask_size is 'Shares offered at the ask when it became the best; null when unknown';

create view analytics.settlements as
select
    s.ts, s.block_number, s.log_index, '0x' || encode(s.tx_hash, 'hex') as tx_hash, m.market_id, m.slug, c.token_id, t.outcome,
    m.outcomes[t.outcome + 1] as outcome_name, '0x' || encode(s.maker, 'hex') as maker, '0x' || encode(s.taker, 'hex') as taker,
    case when s.side > 0 then 'BUY' else 'SELL' end as side, s.price * 0.000001 as price, s.size * 0.000001 as size,
    s.value_usd * 0.000001 as value_usd, s.fee_usd * 0.000001 as fee_usd, s.is_taker_order, s.counted
from settlements s
join chain_tokens c using (token_key)
left join tokens t using (token_id)
left join markets m using (market_key);

comment on view analytics.settlements is 'Fills as the chain settled them, one row an order of a match; always say from when on (ts)';

comment on column analytics.settlements.ts is 'The block''s instant, UTC';

comment on column analytics.settlements.block_number is 'Block';

comment on column analytics.settlements.log_index is 'Place in the block';

comment on column analytics.settlements.tx_hash is 'Transaction';

comment on column analytics.settlements.market_id is 'Market; null while the catalogue does not know the token';

comment on column analytics.settlements.slug is 'Market, readable';

comment on column analytics.settlements.token_id is 'Token of the outcome: a decimal number as text';

comment on column analytics.settlements.outcome is 'Number of the outcome, from 0';

comment on column analytics.settlements.outcome_name is 'Name of the outcome';

comment on column analytics.settlements.maker is 'Wallet that owns the order of this row';

comment on column analytics.settlements.taker is 'Other side; in the taker''s own row the exchange''s contract';

comment on column analytics.settlements.side is 'What the order''s owner did: BUY or SELL';

comment on column analytics.settlements.price is 'USD a share, 0 to 1; null where there are no shares';

comment on column analytics.settlements.size is 'Shares';

comment on column analytics.settlements.value_usd is 'USD';

comment on column analytics.settlements.fee_usd is 'Fee that the order''s owner paid, in USD';

comment on column analytics.settlements.is_taker_order is 'Whether this is the taker''s own row of the match';

comment on column analytics.settlements.counted is 'Sum only rows that are: each match is counted once';

create view analytics.signals as
select
    s.ts, m.market_id, m.slug, s.type, s.outcome, s.value, s.threshold, s.score,
    case s.direction when 1 then 'up' when -1 then 'down' end as direction, s.window_s, s.detail, s.found_at, s.signal_id
from signals s
join markets m using (market_key);

comment on view analytics.signals is 'What stood out, one row a signal; docs/signals.md defines each type';

comment on column analytics.signals.ts is 'End of the window that it was found in, UTC';

comment on column analytics.signals.market_id is 'Market';

comment on column analytics.signals.slug is 'Market, readable';

comment on column analytics.signals.type is 'momentum, volume_spike, whale_alert, spread_widening, book_imbalance or price_reversal';

comment on column analytics.signals.outcome is 'Number of the outcome that it is about, from 0';

comment on column analytics.signals.value is 'What was found, in the unit of its type';

comment on column analytics.signals.threshold is 'From where on it counts';

comment on column analytics.signals.score is 'value / threshold';

comment on column analytics.signals.direction is 'up, down or null';

comment on column analytics.signals.window_s is 'Seconds up to ts';

comment on column analytics.signals.detail is 'Figures behind it';

comment on column analytics.signals.found_at is 'When it was stored';

comment on column analytics.signals.signal_id is 'What it is called; the same however often it is found';

create view analytics.trades as
select
    t.ts, m.market_id, m.slug, t.outcome, m.outcomes[t.outcome + 1] as outcome_name,
    case when t.side > 0 then 'BUY' else 'SELL' end as side,
    t.price * 0.000001 as price, t.size * 0.000001 as size, t.value_usd * 0.000001 as value_usd,
    '0x' || encode(t.tx_hash, 'hex') as tx_hash, t.trade_id, t.seq
from trades t
join markets m using (market_key);

comment on view analytics.trades is 'The exchange''s tape, one row a trade; always say from when on (ts)';

comment on column analytics.trades.ts is 'When, UTC';

comment on column analytics.trades.market_id is 'Market';

comment on column analytics.trades.slug is 'Market, readable';

comment on column analytics.trades.outcome is 'Number of the outcome, from 0';

comment on column analytics.trades.outcome_name is 'Name of the outcome';

comment on column analytics.trades.side is 'What the taker did: BUY or SELL';

comment on column analytics.trades.price is 'USD a share, 0 to 1';

comment on column analytics.trades.size is 'Shares';

comment on column analytics.trades.value_usd is 'price × size';

comment on column analytics.trades.tx_hash is 'Transaction that settles it; null while unknown';

comment on column analytics.trades.trade_id is 'What the trade is called; the same from every source';

comment on column analytics.trades.seq is 'Order within an instant';

create view analytics.wallet_positions as
select
    '0x' || encode(p.wallet, 'hex') as wallet, m.market_id, m.slug, t.outcome, m.outcomes[t.outcome + 1] as outcome_name,
    p.buys, p.bought * 0.000001 as bought, p.bought_usd * 0.000001 as bought_usd,
    p.sells, p.sold * 0.000001 as sold, p.sold_usd * 0.000001 as sold_usd, p.held * 0.000001 as held,
    p.covered * 0.000001 as covered, p.cost_usd * 0.000001 as cost_usd, p.realized_usd * 0.000001 as realized_usd,
    mark.price * 0.000001 as mark_price, (p.covered * 0.000001 * mark.price - p.cost_usd) * 0.000001 as unrealized_usd,
    p.left_out, p.first_trade, p.last_trade
from wallet_positions p
join chain_tokens c using (token_key)
left join tokens t using (token_id)
left join markets m using (market_key)
left join live_prices l on l.market_key = m.market_key and l.outcome = t.outcome
cross join lateral (

    select coalesce(
        case when m.status = 'RESOLVED' then m.outcome_prices[t.outcome + 1] end,
        market_price(l.bid, l.ask, l.mid, l.last), m.outcome_prices[t.outcome + 1]
    ) as price
) as mark
where not p.base;

comment on view analytics.wallet_positions is 'What each wallet has traded, holds and has earned of an outcome, by average cost; some minutes behind the chain';

comment on column analytics.wallet_positions.wallet is 'Address, 0x and 40 hex digits in lower case';

comment on column analytics.wallet_positions.market_id is 'Market; null while the catalogue does not know the token';

comment on column analytics.wallet_positions.slug is 'Market, readable';

comment on column analytics.wallet_positions.outcome is 'Number of the outcome, from 0';

comment on column analytics.wallet_positions.outcome_name is 'Name of the outcome';

comment on column analytics.wallet_positions.buys is 'Fills that bought';

comment on column analytics.wallet_positions.bought is 'Shares bought';

comment on column analytics.wallet_positions.bought_usd is 'USD paid for them';

comment on column analytics.wallet_positions.sells is 'Fills that sold';

comment on column analytics.wallet_positions.sold is 'Shares sold';

comment on column analytics.wallet_positions.sold_usd is 'USD got for them';

comment on column analytics.wallet_positions.held is 'Shares held, by all that is known; below 0: some came from before what is indexed';

comment on column analytics.wallet_positions.covered is 'Shares of those held whose cost is known';

comment on column analytics.wallet_positions.cost_usd is 'What the covered ones cost, by average';

comment on column analytics.wallet_positions.realized_usd is 'Earned (below 0: lost) with what was sold, merged or redeemed';

comment on column analytics.wallet_positions.mark_price is 'What a share is worth: once resolved what it pays, until then the live price, or else what the exchange last said';

comment on column analytics.wallet_positions.unrealized_usd is 'What the covered ones are worth by it, less their cost; null without a price';

comment on column analytics.wallet_positions.left_out is 'Rows left out of the cost, in whole or in part';

comment on column analytics.wallet_positions.first_trade is 'First trade; null: never traded';

comment on column analytics.wallet_positions.last_trade is 'Last trade';

insert into tiers (tier, credits_month, credits_burst, max_keys, max_webhooks, max_connections) values
    ('free', 5000, 5, 1, 5, 5),
    ('pro', 100000, 25, 3, 2500, 50),
    ('enterprise', null, null, null, null, null);

insert into stream_head default values;

insert into positions_head default values;

insert into webhook_head default values;

insert into stage_clocks (stage, warn_after_s, fail_after_s) values
    ('discovery', 900, 1800),
    ('ingestion', 15, 60),
    ('analysis', 180, 600),
    ('aggregates', 180, 600);

insert into stage_clocks (stage, warn_after_s, fail_after_s, detail) values
    ('settlement', 30, 120, '{"off": "no RPC is configured: set PRESAGE_CHAIN_RPC_URLS"}');

insert into stage_clocks (stage, warn_after_s, fail_after_s, detail) values
    ('delivery', 30, 120, '{"off": "no webhook is enabled: POST /v1/webhooks makes one"}');

insert into settings (name, value)
values ('cursor_secret', to_jsonb(encode(sha256(convert_to(gen_random_uuid()::text || gen_random_uuid()::text, 'UTF8')), 'hex')));
