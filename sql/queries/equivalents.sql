-- The same question on two exchanges: texts to be judged, and verdicts.

-- name: make_room#
-- Temporary tables of a pass: a hash of each open market's text, and the pairs with similar titles.
create temp table if not exists market_texts (market_key integer primary key, text bigint not null, open boolean not null);
create temp table if not exists candidates (left_key integer, right_key integer, score real, primary key (left_key, right_key));
truncate market_texts, candidates;

-- name: hash_texts(exchanges)!
-- Hashes of the texts of some exchanges' open markets, and of all whose pairs are kept.
insert into market_texts (market_key, text, open)
select m.market_key, market_text(m.raw, m.event_title), m.status = 'ACTIVE'
from markets m
where (m.status = 'ACTIVE' and m.exchange = any(:exchanges::text[])) or m.market_key in (
    select left_key from equivalents where verdict not in ('different', 'unreadable') or overruled is not null
    union
    select right_key from equivalents where verdict not in ('different', 'unreadable') or overruled is not null
);

-- name: titles(exchange)
-- Titles and labels of an exchange's open markets.
select market_key, question, coalesce(raw ->> 'groupItemTitle', raw ->> 'yes_sub_title', '')
from markets
join market_texts using (market_key)
where exchange = :exchange and open
order by market_key;

-- name: forget_ended()$
-- Deletes pairs that say nothing of a market that has ended. Returns their number.
with gone as (
    delete from equivalents e
    where e.verdict in ('different', 'unreadable') and e.overruled is null and not (
        exists (select from market_texts l where l.market_key = e.left_key and l.open)
        and exists (select from market_texts r where r.market_key = e.right_key and r.open)
    )
    returning 1
)
select count(*) from gone;

-- name: due(rules_version, most)
-- Pairs to judge, and how many there are in all: candidates that were not, and stored pairs whose rules or texts are others now. Those
-- of a market together, the newest markets' first.
select left_key, right_key, coalesce(c.score, e.score), l.text, r.text, count(*) over ()
from candidates c
full join equivalents e using (left_key, right_key)
join market_texts l on l.market_key = left_key
join market_texts r on r.market_key = right_key
where e.left_key is null or (e.rules_version, e.left_text, e.right_text) is distinct from (:rules_version::smallint, l.text, r.text)
order by left_key desc, right_key
limit :most;

-- name: texts(market_keys)
-- What is judged of markets: key, exchange, and the exchange's own object with its event's title.
select market_key, exchange, raw::text, event_title from markets where market_key = any(:market_keys::integer[]);

-- name: save(rules_version, left_keys, right_keys, verdicts, clauses, details, withins, scores, left_texts, right_texts)!
-- Stores verdicts.
insert into equivalents as e (
    left_key, right_key, verdict, clause, detail, within, score, rules_version, left_text, right_text
)
select left_key, right_key, verdict, clause, detail, within, score, :rules_version, left_text, right_text
from unnest(
    :left_keys::integer[], :right_keys::integer[], :verdicts::text[], :clauses::text[], :details::text[], :withins::text[], :scores::real[],
    :left_texts::bigint[], :right_texts::bigint[]
) as judged (left_key, right_key, verdict, clause, detail, within, score, left_text, right_text)
where exists (select from markets where market_key = left_key) and exists (select from markets where market_key = right_key)
order by left_key, right_key
on conflict (left_key, right_key) do update set
    verdict = excluded.verdict, clause = excluded.clause, detail = excluded.detail, within = excluded.within, score = excluded.score,
    rules_version = excluded.rules_version, judged_at = now(), left_text = excluded.left_text, right_text = excluded.right_text;

-- name: counts()
-- Pairs of open markets by verdict, as it is shown.
select e.verdict, count(*)
from equivalent_verdicts e
join markets l on l.market_key = left_key
join markets r on r.market_key = right_key
where l.status = 'ACTIVE' and r.status = 'ACTIVE'
group by 1;

-- name: lapsed()$
-- How many pairs of open markets wait for an operator, as a text has changed since one decided.
select count(*) from equivalents where overruled is not null and overruled_texts <> array[left_text, right_text];

-- name: state()^
-- When the last pass began, when one ended, and how many pairs it left to the next.
select (value ->> 'began_at')::timestamptz, (value ->> 'ended_at')::timestamptz, (value ->> 'left')::int from settings where name = 'equivalents';

-- name: begin()!
-- Stores that a pass begins.
insert into settings (name, value) values ('equivalents', jsonb_build_object('began_at', now()))
on conflict (name) do update set value = settings.value || excluded.value, updated_at = now();

-- name: finish(left)!
-- Stores that a pass has ended, and how many pairs it left.
insert into settings (name, value) values ('equivalents', jsonb_build_object('ended_at', now(), 'left', :left::int))
on conflict (name) do update set value = settings.value || excluded.value, updated_at = now();

-- name: of_market(market_key, verdict, limit)
-- The markets of other exchanges that one was compared with, closest verdict first; without a verdict, those that say something.
select json_build_object(
    'market_id', m.market_id,
    'slug', m.slug,
    'question', m.question,
    'exchange', m.exchange,
    'status', m.status,
    'end_time', as_unix(m.end_time),
    'url', m.url,
    'verdict', e.verdict,
    'clause', e.clause,
    'clause_text', e.clause_text,
    'within', case when e.within = e.side then 'this' when e.within is not null then 'other' end,
    'similarity', e.score,
    'rules_version', e.rules_version,
    'judged_at', as_unix(e.judged_at),
    'overruled', case when e.overruled_at is not null then json_build_object('verdict', e.judged, 'at', as_unix(e.overruled_at)) end
)::text
from (
    select v.*, v.right_key as other_key, 'left' as side from equivalent_verdicts v where v.left_key = :market_key
    union all
    select v.*, v.left_key, 'right' from equivalent_verdicts v where v.right_key = :market_key
) as e
join markets m on m.market_key = e.other_key
where case when :verdict::text is null then e.verdict not in ('different', 'unreadable') else e.verdict = :verdict::text end
order by
    array_position(array['identical', 'inverted', 'subset', 'related', 'unreadable', 'different'], e.verdict), e.score desc, m.market_key
limit :limit;

-- name: pair(one, other)^
-- A pair of markets, whichever way round, held until the transaction ends: its keys, the rules' verdict, what is shown, and whether the
-- texts are still those that were judged.
select
    e.left_key, e.right_key, e.verdict, (select v.verdict from equivalent_verdicts v where (v.left_key, v.right_key) = (e.left_key, e.right_key)),
    (e.left_text, e.right_text) = (
        (select market_text(m.raw, m.event_title) from markets m where m.market_key = e.left_key), (select market_text(m.raw, m.event_title) from markets m where m.market_key = e.right_key)
    )
from equivalents e
where (e.left_key, e.right_key) in ((:one::integer, :other::integer), (:other::integer, :one::integer))
for update;

-- name: overrule(left_key, right_key, verdict, within, why)!
-- Stores an operator's verdict of the texts as they are, or (null) ends it.
update equivalents
set overruled = :verdict::text, overruled_within = :within::text, overruled_why = :why::text,
    overruled_at = case when :verdict::text is not null then now() end,
    overruled_texts = case when :verdict::text is not null then array[left_text, right_text] end
where left_key = :left_key and right_key = :right_key;
