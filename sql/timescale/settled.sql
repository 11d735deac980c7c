-- Who traded: the match on the chain that a trade of the tape is. It is found by the transaction, among the rows of the trade's token from
-- the trade's instant on: they lie in order of time, so the search ends with the first hit, and no index on hashes has to be kept.
-- Of several matches in a transaction it is the one of the trade's size. One row, or none: the settlement is not indexed (yet).

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
