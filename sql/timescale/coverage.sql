-- What is held of a kind of data, as the API shows it: of everything, or of a market. `missing` is what no gap was filled of.
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

-- A gap as the API shows it.
create function coverage_gap(
    id text, kind text, market_id text, from_ts timestamptz, to_ts timestamptz, cause text, status text, filled_at timestamptz, filled_by text,
    added bigint, fault text, from_block bigint, to_block bigint
) returns text
language sql stable parallel safe
return json_build_object(
    'id', id, 'kind', kind, 'market_id', market_id, 'from_ts', as_ms(from_ts), 'to_ts', as_ms(to_ts), 'cause', cause, 'status', status,
    'filled_at', as_unix(filled_at), 'filled_by', filled_by, 'added', added, 'fault', fault, 'from_block', from_block, 'to_block', to_block
)::text;

-- Whether a gap is for a shard to close and to fill: all of its markets are. Null: it concerns markets of several shards.
create function gap_falls_to(market_id text, of_shard integer, of_shards integer, shard integer, shards integer) returns boolean
language sql immutable parallel safe
return case
    when market_id is not null then shard_of(market_id, shards) = shard
    when coalesce(of_shards, 1) % shards = 0 then (coalesce(of_shard, 1) - shard) % shards = 0
end;

-- The name of what each exchange has one of, as `Exchange.own` in config/exchanges.py.
create function own(name text, exchange text) returns text
language sql immutable parallel safe
return case exchange when 'polymarket' then name else name || '_' || exchange end;

-- The stage of each exchange's live feed.
create function exchange_feeds() returns table (exchange text, stage text)
language sql immutable parallel safe
as $$
    select exchange, own('ingestion', exchange) from unnest(array['polymarket', 'kalshi']) as exchange
$$;

-- Since when an exchange's live feed has recorded: since each shard of one number of shards has received something. Null: it never did.
-- In plpgsql, so that a session keeps its plan: planning takes longer than reading.
create function recorded_since(exchange text) returns timestamptz
language plpgsql stable parallel safe
as $$
begin
    return coalesce(
        (
            select to_timestamp((value #>> '{}')::bigint / 1000.0)
            from settings
            where name = own('recorded_since', exchange)
        ),
        (
            with recursive feeds (feed) as (  -- by steps through the index: few feeds have millions of rows
                (select feed from feed_stats order by feed limit 1)
                union all
                select (select f.feed from feed_stats f where f.feed > feeds.feed order by f.feed limit 1)
                from feeds
                where feed is not null
            )
            select min(since)
            from (
                select shards, max(first) as since
                from (
                    select
                        coalesce(substring(feed from '/\d+of(\d+)$')::int, 1) as shards,
                        (
                            select s.ts
                            from feed_stats s
                            where s.feed = feeds.feed and s.messages > 0
                            order by s.ts
                            limit 1
                        ) as first
                    from feeds
                    where feed = exchange or starts_with(feed, exchange || '/')
                ) as firsts
                group by shards
                having count(first) = shards
            ) as begun
        )
    );
end;
$$;

-- Polymarket's, for the release before.
create function recorded_since() returns timestamptz
language sql stable parallel safe
return recorded_since('polymarket');

-- Exchanges whose feed is on. In plpgsql, as above: the queries of lists are planned anew for each page.
create function enabled_exchanges() returns text[]
language plpgsql stable parallel safe
as $$
begin
    return array(select exchange from exchange_feeds() join stage_clocks using (stage) where not detail ? 'off');
end;
$$;

-- Exchanges of which what is live can be relied on: `alive_exchanges`.
create function live_exchanges() returns text[]
language plpgsql stable parallel safe
as $$
begin
    return array(select exchange from alive_exchanges);
end;
$$;

-- What a gap spans; one that goes on, up to now.
create function gap_span(from_ts timestamptz, to_ts timestamptz) returns tstzrange
language sql stable parallel safe
return tstzrange(from_ts, greatest(from_ts, coalesce(to_ts, now())), '[]');
