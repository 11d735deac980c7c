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
