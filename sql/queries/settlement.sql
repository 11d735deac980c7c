-- Queries of the chain's indexer. Every writer takes locks in this order, blocks, ranges, heads, the stream.

-- --- Names, written once and for ever ------------------------------------------------------------------------------------------

-- name: add_contracts(addresses, names)!
-- Contracts that are followed or known.
insert into chain_contracts (address, name)
select address, name from unnest(:addresses::bytea[], :names::text[]) as given (address, name)
on conflict (address) do update set name = excluded.name where chain_contracts.name <> excluded.name;

-- name: contract_keys()
-- The key of each contract.
select address, contract_key from chain_contracts;

-- name: add_tokens(token_ids)!
-- Tokens seen for the first time. Sorted, so that two writers never deadlock.
insert into chain_tokens (token_id)
select token_id from unnest(:token_ids::text[]) as given (token_id) order by token_id collate "C"
on conflict do nothing;

-- name: token_keys(token_ids)
-- The keys of existing tokens.
select token_id, token_key from chain_tokens where token_id = any(:token_ids::text[]);

-- name: markets_of(token_ids)
-- The market and outcome of tokens, as far as the catalogue knows.
select t.token_id, m.market_id, t.outcome
from tokens t join markets m using (market_key)
where t.token_id = any(:token_ids::text[]);

-- --- Blocks: one that stands in chain_blocks has all of its rows --------------------------------------------------------------

-- name: add_blocks(numbers, hashes, parents, times, logs)
-- Inserts new blocks; returns their numbers. Whoever writes the same one at the same time waits here.
insert into chain_blocks (number, hash, parent, ts, logs)
select number, hash, parent, to_timestamp(time), logs
from unnest(:numbers::bigint[], :hashes::bytea[], :parents::bytea[], :times::bigint[], :logs::int[])
    as given (number, hash, parent, time, logs)
order by number
on conflict do nothing
returning number;

-- name: other_blocks(numbers, hashes)
-- Those among given blocks that are stored with another hash.
select number from chain_blocks b join unnest(:numbers::bigint[], :hashes::bytea[]) as given (number, hash) using (number)
where b.hash <> given.hash
order by number;

-- name: blocks_between(from_block, to_block)
-- Blocks stored, the highest first.
select number, hash, logs from chain_blocks where number between :from_block and :to_block order by number desc;

-- name: lowest_block()$
-- The lowest block stored.
select min(number) from chain_blocks;

-- name: span_between(from_block, to_block)^
-- The instants that blocks span, and how many logs they have; null where there is none.
select min(ts), max(ts), coalesce(sum(logs), 0)::bigint from chain_blocks where number between :from_block and :to_block;

-- name: fills_between(from_block, to_block, since, until)
-- Fills as they are published, in order.
select s.block_number, s.log_index, s.tx_hash, b.hash, m.market_id, c.token_id, t.outcome, s.maker, s.taker, s.side,
       s.price, s.size, s.value_usd, s.fee_usd, k.address, s.is_taker_order, date_part('epoch', s.ts)::bigint
from settlements s
join chain_blocks b on b.number = s.block_number
join chain_tokens c using (token_key)
join chain_contracts k using (contract_key)
left join tokens t on t.token_id = c.token_id
left join markets m using (market_key)
where s.block_number between :from_block and :to_block and s.ts between :since and :until
order by s.block_number, s.log_index;

-- name: delete_settlements(from_block, to_block, since, until)!
-- Deletes fills of reverted blocks; the time bounds avoid reading every chunk.
delete from settlements where block_number between :from_block and :to_block and ts between :since and :until;

-- name: counted_between(from_block, to_block, since, until)$
-- How many counted trades those were.
select count(*) from settlements
where counted and block_number between :from_block and :to_block and ts between :since and :until;

-- name: delete_wallet_fills(from_block, to_block, since, until)!
-- The same in the histories.
delete from wallet_fills where block_number between :from_block and :to_block and ts between :since and :until;

-- name: delete_ledger_entries(from_block, to_block, since, until)!
-- The same in the ledger.
delete from ledger_entries where block_number between :from_block and :to_block and ts between :since and :until;

-- name: delete_blocks(from_block, to_block)!
-- The blocks themselves, last.
delete from chain_blocks where number between :from_block and :to_block;

-- --- Ranges: what has been indexed, and what has been counted again -----------------------------------------------------------

-- name: lock_ranges()!
-- Serialises writers from here to the commit.
select pg_advisory_xact_lock(hashtextextended('presage.chain_ranges', 0));

-- name: add_range(from_block, to_block, logs)!
-- Adds a range, merged with those it overlaps or touches; `logs` are its new logs.
with joined as (
    delete from chain_ranges
    where to_block >= :from_block::bigint - 1 and from_block <= :to_block::bigint + 1
    returning from_block, to_block, logs
)
insert into chain_ranges (from_block, to_block, logs)
select least(min(from_block), :from_block::bigint), greatest(max(to_block), :to_block::bigint), coalesce(sum(logs), 0) + :logs::bigint
from joined;

-- name: cut_ranges(from_block, numbers, logs)!
-- Removes this block and all above it from the indexed ranges; the deleted blocks had this many logs each.
with gone as (delete from chain_ranges where from_block >= :from_block)
update chain_ranges r
set to_block = :from_block - 1,
    logs = r.logs - (
        select coalesce(sum(b.logs), 0)
        from unnest(:numbers::bigint[], :logs::bigint[]) as b (number, logs)
        where b.number <= r.to_block
    )
where r.from_block < :from_block and r.to_block >= :from_block;

-- name: add_logs(block, logs)!
-- Corrects a range's number of logs.
update chain_ranges set logs = logs + :logs where :block between from_block and to_block;

-- name: add_check(from_block, to_block)!
-- Adds a recounted range, merged with those it overlaps or touches.
with joined as (
    delete from chain_checks
    where to_block >= :from_block::bigint - 1 and from_block <= :to_block::bigint + 1
    returning from_block, to_block
)
insert into chain_checks (from_block, to_block)
select least(min(from_block), :from_block::bigint), greatest(max(to_block), :to_block::bigint) from joined;

-- name: cut_checks(from_block)!
-- Removes this block and all above it from the recounted ranges.
with gone as (delete from chain_checks where from_block >= :from_block)
update chain_checks set to_block = :from_block - 1 where from_block < :from_block and to_block >= :from_block;

-- name: unindexed(from_block, to_block)
-- The parts of a range that have not been indexed, the highest first.
select lower(hole), upper(hole) - 1
from unnest(
    int8multirange(int8range(:from_block::bigint, :to_block::bigint, '[]'))
    - (select coalesce(range_agg(int8range(from_block, to_block, '[]')), '{}') from chain_ranges)
) as hole
order by 1 desc;

-- name: unchecked(to_block)
-- Ranges that are indexed, but not recounted, up to a block; the lowest first.
select lower(piece), upper(piece) - 1
from unnest(
    (select coalesce(range_agg(int8range(from_block, to_block, '[]')), '{}') from chain_ranges)
    * int8multirange(int8range(null, :to_block::bigint, '[]'))
    - (select coalesce(range_agg(int8range(from_block, to_block, '[]')), '{}') from chain_checks)
) as piece
order by 1;

-- --- Heads --------------------------------------------------------------------------------------------------------------------

-- name: heads(feed)^
-- The chain's state when last read; head, finalized, indexed, detail.
select head, finalized, indexed, detail from chain_heads where feed = :feed;

-- name: followed(feed, block)^
-- The first block followed, and the timestamp (s) of the newest; null if that is below a given block, or not stored.
select coalesce((h.detail ->> 'start')::bigint, h.indexed + 1), date_part('epoch', b.ts)::bigint
from chain_heads h
left join chain_blocks b on b.number = h.indexed and h.indexed >= :block
where h.feed = :feed;

-- name: set_heads(feed, head, finalized, indexed, detail)!
-- Stores its current state. Final blocks stay final.
insert into chain_heads (feed, head, finalized, indexed, detail)
values (:feed, :head, :finalized, :indexed, :detail::jsonb)
on conflict (feed) do update set
    head = excluded.head, finalized = greatest(chain_heads.finalized, excluded.finalized), indexed = excluded.indexed,
    updated_at = now(), detail = chain_heads.detail || excluded.detail;

-- name: remember_heads(feed, detail)!
-- Updates the detail stored beside the heads.
update chain_heads set detail = detail || :detail::jsonb where feed = :feed;

-- name: count_odd(feed, names, counts)!
-- Adds to the counters of logs that could not be decoded, and of anomalies in others.
update chain_heads
set detail = detail || (
    select jsonb_object_agg(name, coalesce((detail ->> name)::bigint, 0) + times)
    from unnest(:names::text[], :counts::bigint[]) as met (name, times)
)
where feed = :feed;

-- name: count_trades(feed, trades)!
-- Adds to, or subtracts from, the number of trades.
update chain_heads set trades = trades + :trades where feed = :feed;

-- name: recount_trades(feed)!
-- Recounts all trades, as ranges may have been backfilled before the head was followed.
update chain_heads set trades = (select count(*) from settlements where counted) where feed = :feed;

-- --- Incidents ----------------------------------------------------------------------------------------------------------------

-- name: note_incident(kind, subject, mended, detail)!
-- Records a contradiction; if it is known, it is the same incident.
insert into data_incidents as i (kind, subject, mended_at, detail)
values (:kind, :subject, case when :mended::boolean then now() end, :detail::jsonb)
on conflict (kind, subject) do update set
    last_at = now(), times = i.times + 1, mended_at = excluded.mended_at, detail = i.detail || excluded.detail;

-- name: mend_incident(kind, subject)!
-- Resolves an incident.
update data_incidents set mended_at = now() where kind = :kind and subject = :subject and mended_at is null;

-- name: mend_all(kind)!
-- Resolves all incidents of a kind.
update data_incidents set mended_at = now() where kind = :kind and mended_at is null;

-- name: incidents()^
-- How many are open, and how many were seen within a day.
select count(*) filter (where mended_at is null), count(*) filter (where last_at > now() - interval '1 day') from data_incidents;

-- name: incidents_lately()
-- The newest, those still open before the others.
select kind, subject, last_at, times, mended_at is not null, detail
from data_incidents
order by mended_at is not null, last_at desc
limit 20;

-- --- Resolutions --------------------------------------------------------------------------------------------------------------

-- name: unsettled(since, until)^
-- Trades of a time range with a transaction hash, as far as its blocks are indexed, and how many of those have no settlement.
with traded as materialized (
    select t.tx_hash
    from coverage_held h
    join trades t on h.held @> tstzrange(t.ts, t.ts + interval '1 minute')
    where h.kind = 'settlements' and t.ts >= :since::timestamptz and t.ts < :until::timestamptz and t.tx_hash is not null
),
settled as materialized (
    select distinct tx_hash
    from settlements
    where ts >= :since::timestamptz - interval '1 minute' and ts < :until::timestamptz + interval '10 minutes'
)
select count(*), count(*) filter (where s.tx_hash is null) from traded left join settled s using (tx_hash);

-- name: resolved_between(from_block, to_block, since)
-- Conditions resolved in final blocks, and the catalogue's state of their markets.
select l.block_number, l.ts, m.market_id, m.status, m.outcome_prices, l.detail -> 'numerators', cardinality(m.outcomes)
from ledger_entries l
join markets m on m.market_id = '0x' || encode(l.condition_id, 'hex')
where l.kind = 'resolution' and l.block_number between :from_block and :to_block and l.ts >= :since
order by l.block_number, l.log_index;

-- name: resolved_unnoticed(to_block)
-- The same for closed markets that the catalogue learnt of, or closed, after the chain had resolved them.
select l.block_number, l.ts, m.market_id, m.status, m.outcome_prices, l.detail -> 'numerators', cardinality(m.outcomes)
from markets m
join lateral (
    select * from ledger_entries
    where condition_id = decode(substr(m.market_id, 3), 'hex') and kind = 'resolution' and block_number <= :to_block
    order by ts desc
    limit 1
) as l on true
where m.status = 'CLOSED' and m.market_id ~ '^0x[0-9a-f]{64}$';

-- name: resolved_since(since, to_block)
-- The same for markets that both have resolved.
select l.block_number, l.ts, m.market_id, m.status, m.outcome_prices, l.detail -> 'numerators', cardinality(m.outcomes)
from ledger_entries l
join markets m on m.market_id = '0x' || encode(l.condition_id, 'hex')
where l.kind = 'resolution' and l.ts >= :since and l.block_number <= :to_block and m.status = 'RESOLVED';
