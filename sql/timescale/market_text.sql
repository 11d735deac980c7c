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
