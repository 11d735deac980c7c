-- What the live feed writes and asks: rows, live state, leases, gaps, clocks.

-- --- Rows: copied to where they belong, or into temporary tables first if some may be stored already -------------------------

-- name: make_room#
-- The temporary tables of a writer's connection. A transaction that uses one leaves all of them empty, which costs a few milliseconds
-- (docs/decisions/0058): rows of live state are sent as arrays of `feed_row` instead.
create temp table if not exists new_trades (
    ts timestamptz, market_key int, outcome smallint, trade_id bigint, seq bigint, side smallint,
    price bigint, size bigint, value_usd bigint, tx_hash bytea
) on commit delete rows;
create temp table if not exists new_changes (
    ts timestamptz, market_key int, outcome smallint, event_id bigint, seq bigint, side smallint, price int, size bigint, hash bytea
) on commit delete rows;

-- name: fill_alone()!
-- One who fills gaps or replays at a time: two sources give the same trade another instant, so each has to see what the other has committed.
select pg_advisory_xact_lock(hashtextextended('presage.fill', 0));

-- name: insert_trades()
-- Those of new_trades that are not there yet; gives their ids. Sorted, so that two writers never wait for each other in a circle.
insert into trades (ts, market_key, outcome, trade_id, seq, side, price, size, value_usd, tx_hash)
select ts, market_key, outcome, trade_id, seq, side, price, size, value_usd, tx_hash
from new_trades
order by market_key, outcome, ts, trade_id
on conflict do nothing
returning trade_id;

-- name: insert_changes()
-- Those of new_changes that are not there yet; gives their ids.
insert into book_events (ts, market_key, outcome, event_id, seq, side, price, size, hash)
select ts, market_key, outcome, event_id, seq, side, price, size, hash
from new_changes
order by market_key, outcome, ts, event_id
on conflict do nothing
returning event_id;

-- name: feed_row()$
-- The type's number, which an array of such rows names.
select 'feed_row'::regtype::oid;

-- name: insert_snapshots(rows)
-- Snapshots that are not there yet; gives their ids.
insert into book_events (ts, market_key, outcome, event_id, seq, bid_prices, bid_sizes, ask_prices, ask_sizes, hash)
select ts, market_key, outcome, event_id, seq, bid_prices, bid_sizes, ask_prices, ask_sizes, hash
from unnest(:rows::feed_row[])
order by market_key, outcome, ts, event_id
on conflict do nothing
returning event_id;

-- name: forget_known_trades(earliest, latest)!
-- Takes out of new_trades what is stored already under another instant: sources differ in the time they give a trade, not in its id.
delete from new_trades n
using trades t
where t.market_key = n.market_key and t.outcome = n.outcome and t.trade_id = n.trade_id
    and t.ts >= :earliest::timestamptz - interval '10 minutes' and t.ts <= :latest::timestamptz + interval '10 minutes';

-- name: forget_hashless_trades(earliest, latest)!
-- Takes out of new_trades what was stored from a print without a transaction hash, and so under another id.
delete from new_trades n
using trades t
where t.market_key = n.market_key and t.outcome = n.outcome and t.tx_hash is null
    and t.side = n.side and t.price = n.price and t.size = n.size
    and t.ts between n.ts - interval '5 seconds' and n.ts + interval '5 seconds'
    and t.ts >= :earliest::timestamptz - interval '5 seconds' and t.ts <= :latest::timestamptz + interval '5 seconds';

-- name: upsert_quotes(rows)
-- Best prices by instant, the last word of each instant winning; gives the tokens for which something is new.
insert into quotes (ts, market_key, outcome, bid, ask, mid, bid_size, ask_size)
select ts, market_key, outcome, bid, ask, mid, bid_size, ask_size
from unnest(:rows::feed_row[])
order by market_key, outcome, ts
on conflict (market_key, outcome, ts) do update set
    bid = excluded.bid, ask = excluded.ask, mid = excluded.mid, bid_size = excluded.bid_size, ask_size = excluded.ask_size
where (quotes.bid, quotes.ask) is distinct from (excluded.bid, excluded.ask)
returning market_key, outcome;

-- name: upsert_prices(rows)!
-- Live prices, unless newer ones are there. The last trade is kept until a newer one is known.
insert into live_prices as p (market_key, outcome, ts, bid, ask, mid, bid_size, ask_size, last, last_ts)
select market_key, outcome, ts, bid, ask, mid, bid_size, ask_size, last, last_ts
from unnest(:rows::feed_row[])
order by market_key, outcome
on conflict (market_key, outcome) do update set
    ts = excluded.ts, bid = excluded.bid, ask = excluded.ask, mid = excluded.mid,
    bid_size = excluded.bid_size, ask_size = excluded.ask_size,
    last = case when p.last is null or excluded.last_ts >= p.last_ts then excluded.last else p.last end,
    last_ts = greatest(p.last_ts, excluded.last_ts),
    updated_at = now()
where excluded.ts >= p.ts;

-- name: newly_verified_books(market_keys, outcomes)
-- Of tokens whose live book is about to be shown, those of which it was not.
select n.market_key, n.outcome
from unnest(:market_keys::int[], :outcomes::smallint[]) as n (market_key, outcome)
left join live_books b using (market_key, outcome)
where b.verified is distinct from true;

-- name: upsert_books(rows)!
-- Live books that agree with the exchange, unless newer ones are there and shown. `seq` begins with the instant; within it, the leader's word
-- is the last.
insert into live_books as b (
    market_key, outcome, seq, ts, verified, bid_prices, bid_sizes, ask_prices, ask_sizes, tick_size, hash, anchored_ts
)
select market_key, outcome, seq, ts, true, bid_prices, bid_sizes, ask_prices, ask_sizes, tick_size, hash, last_ts
from unnest(:rows::feed_row[])
order by market_key, outcome
on conflict (market_key, outcome) do update set
    seq = excluded.seq, ts = excluded.ts, verified = true,
    bid_prices = excluded.bid_prices, bid_sizes = excluded.bid_sizes,
    ask_prices = excluded.ask_prices, ask_sizes = excluded.ask_sizes,
    tick_size = excluded.tick_size, hash = excluded.hash, anchored_ts = excluded.anchored_ts, updated_at = now()
where excluded.seq >> 20 >= b.seq >> 20 or not b.verified;

-- name: disavow_books(market_keys, outcomes)!
-- Live books that may be wrong, and must not be shown until they are written again.
update live_books b
set verified = false, updated_at = now()
from (
    select b.market_key, b.outcome
    from live_books b
    join unnest(:market_keys::int[], :outcomes::smallint[]) as doubted (market_key, outcome) using (market_key, outcome)
    where b.verified
    order by b.market_key, b.outcome
    for update of b
) as held
where b.market_key = held.market_key and b.outcome = held.outcome;

-- name: disavow_all_books(exchange, shard, shards)!
-- All live books of a shard of an exchange: nobody was there to keep them.
update live_books b
set verified = false, updated_at = now()
from markets m
where b.verified and m.market_key = b.market_key and m.exchange = :exchange and shard_of(m.market_id, :shards) = :shard;

-- name: insert_ticks(market_keys, outcomes, instants, before, tick_sizes)!
-- Changes of how fine prices are, that are not there yet.
insert into tick_sizes (market_key, outcome, ts, before, tick_size)
select market_key, outcome, ts, before, tick_size
from unnest(:market_keys::int[], :outcomes::smallint[], :instants::timestamptz[], :before::bigint[], :tick_sizes::bigint[])
    as new_ticks (market_key, outcome, ts, before, tick_size)
order by market_key, outcome, ts
on conflict do nothing;

-- name: refuse(sources, reasons, payloads)!
-- Payloads that could not be taken, and why.
insert into quarantine (source, reason, payload)
select source, reason, payload from unnest(:sources::text[], :reasons::text[], :payloads::text[]) as r (source, reason, payload);

-- name: unverified_books(exchange)
-- Tokens of an exchange whose live book is not shown.
select b.market_key, b.outcome from live_books b join markets m using (market_key) where not b.verified and m.exchange = :exchange;

-- --- What the feed follows ----------------------------------------------------------------------------------------------------

-- name: followed_tokens(exchange, shard, shards)
-- Every token of a shard to follow, with what is known of its price; those of a market together.
select t.token_id, m.market_id, t.market_key, t.outcome, m.tick_size, p.last, as_ms(p.last_ts),
       coalesce((select a.value_24h from market_activity a where a.market_key = t.market_key), 0)
from markets m
join tokens t using (market_key)
left join live_prices p on p.market_key = t.market_key and p.outcome = t.outcome
where m.status = 'ACTIVE' and m.exchange = :exchange and m.order_book and shard_of(m.market_id, :shards) = :shard
order by t.market_key;

-- name: followed_markets(first_key, last_key, exchange, shard, shards)^
-- A shard's markets to follow between two keys, and the number of tokens of each: two arrays.
select coalesce(array_agg(f.market_key), '{}'), coalesce(array_agg(f.tokens), '{}')
from (
    select m.market_key, count(*) as tokens
    from markets m join tokens t using (market_key)
    where m.market_key between :first_key and :last_key
      and m.status = 'ACTIVE' and m.exchange = :exchange and m.order_book and shard_of(m.market_id, :shards) = :shard
    group by m.market_key
) f;

-- name: tokens_of(market_keys, exchange, shard, shards)
-- The tokens of these of a shard's markets, and whether to follow them. Those of a market together.
select t.token_id, m.market_id, t.market_key, t.outcome, m.tick_size, p.last, as_ms(p.last_ts),
       coalesce((select a.value_24h from market_activity a where a.market_key = t.market_key), 0),
       m.status = 'ACTIVE' and m.order_book
from markets m
join tokens t using (market_key)
left join live_prices p on p.market_key = t.market_key and p.outcome = t.outcome
where m.market_key = any(:market_keys::int[]) and m.exchange = :exchange and shard_of(m.market_id, :shards) = :shard
order by t.market_key;

-- name: catalogue_cursor()^
-- Where the catalogue stands: its newest market and its newest change of state. Both grow in commit order, as it has one writer at a time.
select coalesce((select max(market_key) from markets), 0), coalesce((select max(change_id) from market_status_changes), 0);

-- name: changed_markets(market_key, change_id, token_ids)
-- Markets that came, or changed state, since a cursor, and those of some tokens.
select market_key from markets where market_key > :market_key
union
select market_key from market_status_changes where change_id > :change_id
union
select market_key from tokens where token_id = any(:token_ids::text[]);

-- name: activity_computed_at()$
-- When the markets' recent activity was computed: Unix seconds.
select (value #>> '{}')::bigint from settings where name = 'activity_computed_at';

-- name: volumes(since)
-- USD traded in 24 hours, of the markets for which that has changed in or after a second.
select market_key, value_24h from market_activity where computed_at >= to_timestamp(:since::bigint);

-- --- Leases -------------------------------------------------------------------------------------------------------------------

-- name: try_lead(feed)$
-- Whether this session leads the feed now. It does until it ends or resigns.
select pg_try_advisory_lock(hashtextextended('presage.feed.' || :feed, 0));

-- name: resign(feed)$
-- Gives the lead up.
select pg_advisory_unlock(hashtextextended('presage.feed.' || :feed, 0));

-- name: server_process()$
-- The number of this session's server process, also behind a pooler, which tells clients numbers of its own.
select pg_backend_pid();

-- name: leads(feed, pid)$
-- Whether the session of a server process leads the feed, on this server.
select exists (
    select
    from hashtextextended('presage.feed.' || :feed, 0) as name
    join pg_locks l on l.classid = ((name >> 32) & 4294967295)::oid and l.objid = (name & 4294967295)::oid
    where l.pid = :pid and l.locktype = 'advisory' and l.objsubid = 1 and l.granted
        and l.database = (select oid from pg_database where datname = current_database())
);

-- name: others_lead(family, shards)$
-- Whether a session leads a shard of another number of shards: by its lock, which ends with the session.
select exists (
    select
    from generate_series(1, 64) as n
    cross join lateral generate_series(1, n) as k
    cross join lateral hashtextextended('presage.feed.' || feed_of(:family, k, n), 0) as name
    join pg_locks l on l.classid = ((name >> 32) & 4294967295)::oid and l.objid = (name & 4294967295)::oid
    where n <> :shards and l.locktype = 'advisory' and l.objsubid = 1 and l.granted
        and l.database = (select oid from pg_database where datname = current_database())
);

-- name: want_shards(shards)!
-- Stores how many shards there are to be: runs of another number leave once these are ready.
insert into settings (name, value)
values ('live_shards', to_jsonb(:shards::int))
on conflict (name) do update set value = excluded.value, updated_at = now()
where settings.value <> excluded.value;

-- name: turn(family, shards, ready_s, max_silent_s, silent_count)^
-- How many shards are wanted (null: nobody has said); whether a run of each of those could lead at once, or a leader has left for them,
-- since when its markets have none; whether a run of another number than `shards` is alive, and whether one leads, or did lately.
-- `silent_count`: silent ones that led or could lead are alive too, as the database may have been away.
select
    s.wanted,
    s.wanted is not null and (
        not exists (
            select
            from generate_series(1, s.wanted) as n
            where not exists (
                select
                from feed_leases l
                where l.feed = feed_of(:family, n, s.wanted) and l.role <> 'gone' and l.ready and l.beat_at > now() - interval '10 seconds'
                    and (l.detail ->> 'ready_for_s')::float8 >= :ready_s
            )
        )
        or exists (
            select
            from feed_leases l
            where (l.feed = :family or starts_with(l.feed, :family || '/')) and l.role = 'gone' and l.beat_at > s.since
                and (l.detail ->> 'left_for_shards')::int = s.wanted
        )
    ),
    exists (
        select
        from feed_leases l
        where (l.feed = :family or starts_with(l.feed, :family || '/')) and l.role <> 'gone'
            and (
                l.beat_at > now() - interval '10 seconds'
                or :silent_count and (l.ready or l.role = 'leader') and l.beat_at > now() - interval '1 day'
            )
            and l.feed <> all (array(select feed_of(:family, n, :shards) from generate_series(1, :shards) as n))
    ),
    exists (
        select
        from feed_leases l
        where (l.feed = :family or starts_with(l.feed, :family || '/'))
            and (l.role = 'leader' or l.role = 'gone' and l.detail ? 'left_for_shards')
            and l.beat_at > now() - make_interval(secs => :max_silent_s::float8)
            and l.feed <> all (array(select feed_of(:family, n, :shards) from generate_series(1, :shards) as n))
    )
from (select max((value #>> '{}')::int) as wanted, max(updated_at) as since from settings where name = 'live_shards') as s;

-- name: is_up(family)$
-- Whether a run of any shard could lead, or leads.
select exists (
    select from feed_leases where (feed = :family or starts_with(feed, :family || '/')) and ready and beat_at > now() - interval '1 day'
);

-- name: has_begun(family)$
-- Whether a run of any shard held a lease within a day.
select exists (select from feed_leases where (feed = :family or starts_with(feed, :family || '/')) and beat_at > now() - interval '1 day');

-- name: settled_ms(family, shards)$
-- Up to when (ms) the leaders of all shards have committed; null while a shard has no leader with every book.
select case when count(distinct l.feed) = :shards then min((l.detail ->> 'written_ms')::bigint) end
from generate_series(1, :shards) as n
join feed_leases l on l.feed = feed_of(:family, n, :shards)
where l.role = 'leader' and l.ready and l.beat_at > now() - interval '10 seconds';

-- name: clock()$
-- The database's clock, in ms.
select as_ms(clock_timestamp());

-- name: touch_lease(run_id, feed, role, ready, window_s, pid, host, detail)$
-- A sign of life; gives the database's clock, in ms.
insert into feed_leases (run_id, feed, role, ready, started_at, beat_at, window_ends_at, pid, host, detail)
values (:run_id, :feed, :role, :ready, now(), now(), now() + make_interval(secs => :window_s::float8), :pid, :host, :detail::jsonb)
on conflict (run_id) do update set
    role = excluded.role, ready = excluded.ready, beat_at = now(), detail = excluded.detail
returning as_ms(clock_timestamp());

-- name: leases(feed)
-- Who holds, or held, a lease on the feed: run, role, ready, started, seconds since the last sign of life, detail, process, host.
select run_id, role, ready, date_part('epoch', started_at), date_part('epoch', now() - beat_at), detail, pid, host
from feed_leases
where feed = :feed and beat_at > now() - interval '1 day'
order by started_at;

-- name: lease_of(host)^
-- The lease that a run on a host took last: feed, whether it is alive, whether it could lead.
select feed, role <> 'gone' and beat_at > now() - interval '10 seconds', ready
from feed_leases
where host = :host
order by started_at desc
limit 1;

-- name: beat_host(host, instance)$
-- A sign of life of a host that runs feeds; returns the instance that gave the one before, null if there was none.
insert into feed_hosts (host, instance) values (:host, :instance)
on conflict (host) do update set instance = excluded.instance, beat_at = now()
returning (select before.instance from feed_hosts before where before.host = :host);

-- name: forget_host(host)!
-- It runs no feeds any more.
delete from feed_hosts where host = :host;

-- name: alive_hosts()
-- The names of the hosts that run feeds.
select host from feed_hosts where beat_at > now() - interval '30 seconds' order by host;

-- name: has_hosts()$
-- Whether any host has run feeds within a day.
select exists (select from feed_hosts where beat_at > now() - interval '1 day');

-- name: wanted_shards()$
-- How many shards there are to be; null: nobody has said.
select (value #>> '{}')::int from settings where name = 'live_shards';

-- name: runs_of_hosts()
-- Runs that have been alive within a day: run, feed, host, whether it could lead, seconds since the last sign of life, whether it has left.
select run_id, feed, coalesce(host, ''), ready and role <> 'gone', date_part('epoch', now() - beat_at), role = 'gone'
from feed_leases
where beat_at > now() - interval '1 day';

-- name: progress(family, run_id, stage)
-- Each shard's last leader but this run, however long ago it led: shard, shards, when it took the lead (ms), and up to when (ms) what it
-- heard is committed. What the stage's clock says is the last row, of every market and before all: leases are forgotten some day.
select * from (
    select distinct on (feed)
        coalesce(substring(feed from '/(\d+)of\d+$')::int, 1), coalesce(substring(feed from '/\d+of(\d+)$')::int, 1) as shards,
        coalesce((detail ->> 'led_ms')::bigint, 0) as led_ms, (detail ->> 'written_ms')::bigint as written_ms
    from feed_leases
    where (feed = :family or starts_with(feed, :family || '/')) and run_id <> :run_id and (detail ->> 'written_ms')::bigint > 0
    order by feed, led_ms desc, written_ms desc
) as leaders
union all
select 1, 1, 0, coalesce((detail ->> 'written_ms')::bigint, 0) from stage_clocks where stage = :stage;

-- --- Gaps ---------------------------------------------------------------------------------------------------------------------

-- name: open_gaps(losses, kinds, market_keys, of_shard, of_shards, from_ms, to_ms, causes, run_id, exchange)
-- One row a loss, kind and market (null: all of a shard, or of every one); gives the ids of those that are still open, with the numbers of their losses.
with given as (
    select nextval(pg_get_serial_sequence('coverage_gaps', 'gap_id')) as gap_id, l.*
    from unnest(
        :losses::int[], :kinds::text[], :market_keys::int[], :of_shard::int[], :of_shards::int[], :from_ms::bigint[], :to_ms::bigint[],
        :causes::text[]
    ) as l (loss, kind, market_key, shard, shards, from_ms, to_ms, cause)
), saved as (
    insert into coverage_gaps (gap_id, kind, market_key, from_ts, to_ts, cause, run_id, shard, shards, exchange)
    overriding system value
    select
        gap_id, kind, market_key, to_timestamp(from_ms / 1000.0), to_timestamp(to_ms / 1000.0), cause, :run_id, shard, shards, :exchange
    from given
)
select loss, gap_id from given where to_ms is null;

-- name: close_gaps(gap_ids, to_ms, filled_by)!
-- Losses that are over; `filled_by` when nothing was missed after all.
update coverage_gaps g
set to_ts = greatest(from_ts, to_timestamp(c.to_ms / 1000.0)), filled_by = c.filled_by,
    filled_at = case when c.filled_by is not null then now() end
from unnest(:gap_ids::bigint[], :to_ms::bigint[], :filled_by::text[]) as c (gap_id, to_ms, filled_by)
where g.gap_id = c.gap_id and g.to_ts is null;

-- name: close_abandoned_gaps(to_ms, shard, shards, settled_ms, exchange)!
-- Gaps left open by runs that lead no longer: whoever leads now holds every book of the shard since `to_ms`. Those of another number of
-- shards end where all have committed (`settled_ms`; null: some have not, or it is not for this shard to say).
update coverage_gaps g
set to_ts = greatest(from_ts, to_timestamp(case when falls_here then :to_ms::bigint else :settled_ms::bigint end / 1000.0))
from (
    select g.gap_id, gap_falls_to(m.market_id, g.shard, g.shards, :shard, :shards) as falls_here
    from coverage_gaps g
    left join markets m using (market_key)
    where g.to_ts is null and g.exchange = :exchange
) as left_open
where g.gap_id = left_open.gap_id and g.to_ts is null and coalesce(falls_here, :settled_ms::bigint is not null) and not exists (
    select from feed_leases l
    where l.run_id = g.run_id and l.role = 'leader' and l.beat_at > now() - interval '10 seconds'
);

-- name: gaps_to_fill(run_id, besides, exchange)
-- Recent gaps that other runs of an exchange's feed left, besides those of some causes: id, market (null: all of a shard), shard, shards (null: of every one),
-- from, to (null: open).
select gap_id, market_key, shard, shards, as_ms(from_ts), as_ms(to_ts)
from coverage_gaps
where filled_at is null and exchange = :exchange and run_id is distinct from :run_id and created_at > now() - interval '2 minutes'
    and from_ts > now() - interval '1 hour' and cause <> all(:besides::text[])
order by from_ts;

-- name: starts_seen(name, discovery, shard, shards)^
-- The newest market, and the newest change of state, whose start was seen to in a shard (null: none yet); the newest there are; and
-- whether discovery walks the catalogue for the first time. Of another number of shards, the least that all have seen counts.
select
    (coalesce(case when s.value -> 'shards' = to_jsonb(:shards::int) then s.value #> array['seen', :shard::text] end, s.value) ->> 'market_key')::int,
    (coalesce(case when s.value -> 'shards' = to_jsonb(:shards::int) then s.value #> array['seen', :shard::text] end, s.value) ->> 'change_id')::bigint,
    coalesce((select max(market_key) from markets), 0), coalesce((select max(change_id) from market_status_changes), 0),
    coalesce(d.value ? 'tried_at' and not d.value ? 'full_at', false)
from (select) as one
left join settings s on s.name = :name
left join settings d on d.name = :discovery;

-- name: note_seen(name, market_key, change_id, shard, shards)!
-- The start of these and all older ones was seen to in a shard. `market_key` and `change_id` themselves say what all shards have seen.
with mine as (
    select jsonb_build_object(:shard::text, jsonb_build_object('market_key', :market_key::int, 'change_id', :change_id::bigint)) as seen
),
held as (
    select case
        when value -> 'shards' = to_jsonb(:shards::int) then value -> 'seen'
        else (select jsonb_object_agg(n::text, value - '{shards,seen}'::text[]) from generate_series(1, :shards) as n)
    end as seen
    from settings
    where name = :name
    for update
),
noted as (select coalesce((select seen from held), '{}') || seen as seen from mine)
insert into settings (name, value)
select :name, jsonb_build_object('shards', :shards::int, 'seen', seen, 'market_key', least.market_key, 'change_id', least.change_id)
from noted
cross join lateral (
    select min((value ->> 'market_key')::int) as market_key, min((value ->> 'change_id')::bigint) as change_id from jsonb_each(seen)
) as least
on conflict (name) do update set value = excluded.value, updated_at = now();

-- name: new_markets(after_key, after_change, upto_key, upto_change, market_keys, since_ms, exchange, shard, shards)
-- Markets of a shard, of the order book that are new, are open again, or are named: key, id, tokens, since when (ms) something of them may be missing,
-- and when they were over (null: they are not). Nothing is missing from before the feed began to record; `since_ms` where that is not known.
with recorded as (
    select coalesce(recorded_since(:exchange), to_timestamp(:since_ms::bigint / 1000.0)) as since
),
found as (
    select market_key, coalesce(created_at, first_seen_at) as began
    from markets
    where market_key > :after_key and market_key <= :upto_key
    union all
    select c.market_key, coalesce(
        (select max(l.ts) from market_status_changes l where l.market_key = c.market_key and l.change_id < c.change_id and l.to_status <> 'ACTIVE'),
        c.ts
    )
    from market_status_changes c
    where c.change_id > :after_change and c.change_id <= :upto_change and c.market_key <= :after_key
        and c.to_status = 'ACTIVE' and c.from_status <> 'ACTIVE'
    union all
    select market_key, coalesce(created_at, first_seen_at) from markets where market_key = any(:market_keys::int[])
),
lives as (
    select
        m.market_key, m.market_id, min(f.began) as began,
        case when m.status <> 'ACTIVE' then coalesce(m.closed_at, m.resolved_at, m.end_time, m.created_at, m.first_seen_at) end as ended
    from found f
    join markets m using (market_key)
    where m.exchange = :exchange and m.order_book and shard_of(m.market_id, :shards) = :shard
    group by m.market_key
)
select
    l.market_key, l.market_id, array(select token_id from tokens t where t.market_key = l.market_key),
    as_ms(greatest(l.began, r.since)), as_ms(l.ended)
from lives l
cross join recorded r
where l.ended is null or l.ended > r.since
order by l.market_key;

-- name: open_starts(kinds, market_keys, from_ms, to_ms, cause, run_id, exchange, shard, shards)
-- A gap a kind and start of a market (null: of all of the shard); gives their ids and markets. One that is over, and lies in a gap of all markets
-- that no standby may fill any more with what it heard, is none of its own.
insert into coverage_gaps (kind, market_key, from_ts, to_ts, cause, run_id, exchange, shard, shards)
select
    k.kind, s.market_key, s.from_ts, case when s.to_ts is not null then greatest(s.from_ts, s.to_ts) end, :cause, :run_id, :exchange,
    case when s.market_key is null and :shards::int > 1 then :shard::int end, case when s.market_key is null and :shards::int > 1 then :shards::int end
from unnest(:kinds::text[]) as k (kind)
cross join (
    select market_key, to_timestamp(from_ms / 1000.0) as from_ts, to_timestamp(to_ms / 1000.0) as to_ts
    from unnest(:market_keys::int[], :from_ms::bigint[], :to_ms::bigint[]) as given (market_key, from_ms, to_ms)
) as s
where not exists (
    select from coverage_gaps g
    where g.kind = k.kind and g.exchange = :exchange and g.market_key is null and g.filled_at is null
        and (g.shard is null or g.shard = :shard::int and g.shards = :shards::int)
        and g.from_ts <= s.from_ts and coalesce(g.to_ts, 'infinity') >= s.to_ts
        and (g.created_at < now() - interval '2 minutes' or g.from_ts < now() - interval '1 hour')
)
returning gap_id, market_key;

-- name: forget_gaps(gap_ids)!
-- Gaps in which nothing was missed after all.
delete from coverage_gaps where gap_id = any(:gap_ids::bigint[]) and to_ts is null;

-- name: trade_gaps_to_fill(settle_s, shard, shards, settled_ms, exchange)
-- Closed gaps in an exchange's trades of the last week that nobody has filled yet and that fall to a shard, tried at most so often: id, market, shard,
-- shards, from, to, markets that an earlier attempt did not know (null: all is to be fetched), seconds since its end, attempts. Those of
-- another number of shards fall to whoever knows that all have committed them (`settled_ms`).
select
    g.gap_id, g.market_key, g.shard, g.shards, as_ms(g.from_ts), as_ms(g.to_ts), nullif(g.detail -> 'unknown_markets', 'null'),
    date_part('epoch', clock_timestamp() - g.to_ts), coalesce((g.detail ->> 'attempts')::int, 0)
from coverage_gaps g
left join markets m on m.market_key = g.market_key
where g.kind = 'trades' and g.exchange = :exchange and g.filled_at is null and g.to_ts < now() - make_interval(secs => :settle_s::float8)
    and g.created_at > now() - interval '7 days'
    and coalesce(
        gap_falls_to(m.market_id, g.shard, g.shards, :shard, :shards),
        g.to_ts < to_timestamp((:settled_ms::bigint - 3000) / 1000.0), false
    )
    and coalesce((g.detail ->> 'attempts')::int, 0) < 8
    and coalesce((g.detail ->> 'next_at')::float8, 0) < date_part('epoch', now())
order by g.from_ts
limit 200;

-- name: mark_filled(gap_ids, to_ms, filled_by, detail)!
-- What was missing has been written after all; a gap still open was filled up to `to_ms`.
update coverage_gaps
set filled_at = now(), to_ts = coalesce(to_ts, greatest(from_ts, to_timestamp(:to_ms::bigint / 1000.0))), filled_by = :filled_by,
    detail = (detail - array['unknown_markets', 'fault']) || :detail::jsonb
where gap_id = any(:gap_ids::bigint[]) and filled_at is null;

-- name: count_added(gap_ids, trades)!
-- Count trades written into gaps, within the transaction that writes them, whatever comes of the rest.
update coverage_gaps
set detail = detail || jsonb_build_object('trades', coalesce((detail ->> 'trades')::bigint, 0) + :trades::bigint)
where gap_id = any(:gap_ids::bigint[]);

-- name: mark_attempt(gap_ids, next_s, fault, detail)!
-- An attempt that failed or left something, why, and when to try again.
update coverage_gaps
set detail = detail || jsonb_build_object(
    'attempts', coalesce((detail ->> 'attempts')::int, 0) + 1,
    'next_at', date_part('epoch', now()) + :next_s::float8,
    'fault', :fault::text
) || :detail::jsonb
where gap_id = any(:gap_ids::bigint[]);

-- name: markets_of(market_keys)
-- The exchange's ids of markets.
select market_id from markets where market_key = any(:market_keys::int[]);

-- --- Clocks and figures -------------------------------------------------------------------------------------------------------

-- name: beat(stage, last_data_at, detail)!
-- A stage touches its clock: it has looked, and this is the newest data it brought in (null: none). Detail is a JSON text, or null to keep it.
update stage_clocks
set beat_at = now(),
    -- (`least` passes over a null, so it needs the case.)
    last_data_at = greatest(last_data_at, case when :last_data_at::timestamptz is not null then least(:last_data_at::timestamptz, now()) end),
    detail = coalesce(:detail::jsonb, detail - '{reason,since}'::text[])
where stage = :stage;

-- name: beat_shards(stage, family, shards, run_id)!
-- The live feed's clock, by the leases of all shards: as alive and as fresh as the worst of them. The leader of the first shard that has
-- one touches it. A shard without markets delays nothing. While one has no leader, beat, newest data and `written_ms` stay as they were.
-- Of several reasons one is given: that a shard has no leader, else what hinders one, else by how much the last of them is behind.
with leaders as (
    select distinct on (n)
        n, l.run_id, l.beat_at, l.detail, (l.detail ->> 'tokens')::int = 0 as idle, nullif((l.detail ->> 'newest_ms')::bigint, 0) as newest_ms
    from generate_series(1, :shards) as n
    left join feed_leases l
        on l.feed = feed_of(:family, n, :shards) and l.role = 'leader' and l.beat_at > now() - interval '10 seconds'
    order by n, l.beat_at desc nulls last
),
runs as (
    select jsonb_agg(jsonb_build_object(
        'shard', n || ' of ' || :shards::int, 'run_id', l.run_id, 'role', l.role, 'ready', l.ready, 'rate', l.detail -> 'rate',
        'lag_p99_ms', l.detail -> 'lag_p99_ms', 'backlog_events', l.detail -> 'backlog_events'
    ) order by n, l.role, l.run_id) as shards
    from generate_series(1, :shards) as n
    left join feed_leases l
        on l.feed = feed_of(:family, n, :shards) and l.role <> 'gone' and l.beat_at > now() - interval '10 seconds'
),
hindered as (
    select 'shard ' || n || ' of ' || :shards::int || ' has no leader' as reason, null::jsonb as since, n, 0 as rank, 0::float8 as behind_s
    from leaders
    where run_id is null
    union all
    select
        case when :shards::int > 1 then 'shard ' || n || ' of ' || :shards::int || ': ' else '' end || (detail ->> 'reason'), detail -> 'since', n,
        case when detail ? 'behind_s' then 2 else 1 end, coalesce((detail ->> 'behind_s')::float8, 0)
    from leaders
    where detail ? 'reason' and (not idle or (select bool_and(idle) from leaders))
    order by rank, behind_s desc, n
    limit 1
),
worst as (
    select
        count(run_id) = :shards as whole, min(beat_at) as beat_at,
        to_timestamp(case when bool_and(idle or newest_ms is not null) then min(newest_ms) end / 1000.0) as newest,
        case when :shards = 1 then (array_agg(detail order by n))[1] || jsonb_build_object('run_id', min(run_id)) else jsonb_strip_nulls(jsonb_build_object(
            'tokens', sum((detail ->> 'tokens')::bigint), 'sockets', sum((detail ->> 'sockets')::bigint), 'rate', sum((detail ->> 'rate')::float8),
            'backlog_events', sum((detail ->> 'backlog_events')::bigint), 'backlog_kb', sum((detail ->> 'backlog_kb')::bigint),
            'written_ms', min((detail ->> 'written_ms')::bigint), 'newest_ms', min(newest_ms), 'led_ms', max((detail ->> 'led_ms')::bigint),
            'lag_p99_ms', max((detail ->> 'lag_p99_ms')::int), 'heard_after_ms', max((detail ->> 'heard_after_ms')::bigint),
            'ready_for_s', min((detail ->> 'ready_for_s')::float8), 'clock_ahead_ms', max((detail ->> 'clock_ahead_ms')::bigint)
        )) end - '{reason,since,behind_s}'::text[] as detail
    from leaders
)
update stage_clocks as s
set beat_at = case when w.whole then w.beat_at else s.beat_at end,
    -- (`least` passes over a null, so it needs the case.)
    last_data_at = greatest(s.last_data_at, case when w.whole and w.newest is not null then least(w.newest, now()) end),
    detail = w.detail || jsonb_build_object('shards', r.shards)
        || jsonb_build_object('written_ms', case when w.whole then w.detail else s.detail end -> 'written_ms')
        || coalesce((
            select jsonb_build_object('reason', reason, 'since', coalesce(
                since, case when s.detail ->> 'reason' = reason then s.detail -> 'since' end, to_jsonb(as_unix(now()))
            ))
            from hindered
        ), '{}')
from worst w, runs r
where s.stage = :stage and :run_id = (select run_id from leaders where run_id is not null order by n limit 1);

-- name: hinder(stage, reason)!
-- A stage cannot go on, and says why: `detail.reason`, and since when by the Unix seconds of `detail.since`, until it beats again.
update stage_clocks
set detail = detail || jsonb_build_object(
    'reason', :reason::text,
    'since', case when detail ->> 'reason' = :reason::text then detail -> 'since' else to_jsonb(as_unix(now())) end
)
where stage = :stage;

-- name: switch_off(stage, why)!
-- A stage does not run, and says why; how far it had come is still known.
update stage_clocks set detail = jsonb_strip_nulls(jsonb_build_object('off', :why::text, 'written_ms', detail -> 'written_ms'))
where stage = :stage and detail ->> 'off' is distinct from :why::text;

-- name: switch_on(stage)!
-- A stage is configured: from now on its lateness counts.
update stage_clocks set detail = detail - 'off' where stage = :stage and detail ? 'off';

-- name: add_stats(feed, run_id, messages, rows, lag_counts, lag_p50_ms, lag_p99_ms, lag_max_ms, reconnects, reanchored)!
-- What a leader did since its last such row.
insert into feed_stats (
    ts, feed, run_id, messages, rows, lag_counts, lag_p50_ms, lag_p99_ms, lag_max_ms, reconnects, reanchored
)
values (
    now(), :feed, :run_id, :messages, :rows, :lag_counts::int[], :lag_p50_ms, :lag_p99_ms, :lag_max_ms, :reconnects, :reanchored
);
