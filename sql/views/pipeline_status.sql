-- How late each stage is, by now: a stage that stops touching its clock turns late, then stale, by itself.
-- Discovery counts from its last look, as a quiet catalogue is not late; the others from the newest data they brought in.
create view pipeline_status as
select
    stage,
    case
        when lag_s is null then 'missing'
        when lag_s <= warn_after_s then 'fresh'
        when lag_s <= fail_after_s then 'late'
        else 'stale'
    end as status,
    last_data_at, beat_at, lag_s, warn_after_s, fail_after_s, detail,
    detail ? 'off' as off  -- not configured, says why in words: shown, and not held against the pipeline
from (
    -- The exchange's clock may be ahead of ours. (`greatest` passes over a null, so it needs the case.)
    select *, case when since is not null then greatest(0, date_part('epoch', now() - since)) end as lag_s
    from (select *, case stage when 'discovery' then beat_at else last_data_at end as since from stage_clocks) as clocks
) as late;
