-- Small enough for the planner to inline: then they cost what the expression costs, and indexes behind a view are still used.
-- Inlining asks that a function be no steadier than its body, hence the last two are stable: extract() from a timestamptz is.

-- Micro-units to the number that JSON shows.
create function as_number(micro bigint) returns double precision
language sql immutable strict parallel safe
return micro / 1000000.0::double precision;

-- Milliseconds since 1970. By numeric, as a double has lost the last microsecond by 2039.
create function as_ms(ts timestamptz) returns bigint
language sql stable strict parallel safe
return floor(extract(epoch from ts) * 1000)::bigint;

-- Seconds since 1970.
create function as_unix(ts timestamptz) returns bigint
language sql stable strict parallel safe
return floor(extract(epoch from ts))::bigint;

-- A record with more fields after its own.
create function extended(record json, more json) returns text
language sql immutable strict parallel safe
return left(record::text, -1) || ',' || substr(more::text, 2);
