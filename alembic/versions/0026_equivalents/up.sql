-- A hash of all that is judged of a market's text, and of nothing else: titles, rules, Kalshi's label and strike, and the year of the end.
create function market_text(raw jsonb, event_title text) returns bigint
language sql stable parallel safe
return (
    select hashtextextended(concat_ws(
        E'\n', r.question, case when r.question is null then coalesce(r.title, event_title) end, r.description, r.rules_primary, r.rules_secondary, r.outcomes,
        r.yes_sub_title, left(coalesce(r."endDate", r.close_time), 4), r.strike_type, r.floor_strike, r.cap_strike
    ), 0)
    from jsonb_to_record(raw) as r (
        question text, title text, description text, rules_primary text, rules_secondary text, outcomes text, yes_sub_title text,
        "endDate" text, close_time text, strike_type text, floor_strike text, cap_strike text
    )
);

-- Pairs of markets with the verdict that is shown. An operator's stands while the texts are those that it is of; after that nothing is
-- said of the pair until the operator decides again: the rules had been wrong of it before.
create view equivalent_verdicts as
select
    left_key, right_key, score, rules_version, judged_at, verdict as judged,
    case when overruled is null then verdict when is_current then overruled else 'unreadable' end as verdict,
    case when overruled is null then clause end as clause,
    case
        when overruled is null then detail
        when is_current then overruled_why
        else 'a text has changed since an operator decided: ' || overruled_why
    end as clause_text,
    case when overruled is null then within when is_current then overruled_within end as within,
    overruled_at
from (select *, overruled_texts = array[left_text, right_text] as is_current from equivalents) as pairs;
