-- How late each stage is, by now: a stage that stops touching its clock turns late, then stale, by itself.
-- So does one whose new rows break what holds of them: by the severity of the check, whatever its clock says.
-- Discovery counts from its last look, as a quiet catalogue is not late; the others from the newest data they brought in.
create view pipeline_status as
select
    stage,
    case
        when lag_s is null then 'missing'
        when lag_s > fail_after_s or quality.worst = 'fail' then 'stale'
        when lag_s > warn_after_s or quality.worst = 'warn' then 'late'
        else 'fresh'
    end as status,
    last_data_at, beat_at, lag_s, warn_after_s, fail_after_s,
    case when quality.checks is null then detail else detail || jsonb_build_object('quality', quality.checks) end as detail,
    detail ? 'off' as off  -- not configured, says why in words: shown, and not held against the pipeline
from (
    -- The exchange's clock may be ahead of ours. (`greatest` passes over a null, so it needs the case.)
    select *, case when since is not null then greatest(0, date_part('epoch', now() - since)) end as lag_s
    from (
        select
            stage, last_data_at, beat_at, detail,
            case when stage like 'discovery%' then beat_at else last_data_at end as since,
            -- What an administrator has set goes before the clock's own; what makes no sense there counts as not set.
            coalesce(jsonb_path_query_first(warn.value, 'strict $ ? (@ >= 1 && @ <= 604800)')::int, warn_after_s) as warn_after_s,
            coalesce(jsonb_path_query_first(fail.value, 'strict $ ? (@ >= 1 && @ <= 604800)')::int, fail_after_s) as fail_after_s
        from stage_clocks
        left join settings as warn on warn.name = 'parameters.' || stage || '_warn_after_s'
        left join settings as fail on fail.name = 'parameters.' || stage || '_fail_after_s'
    ) as clocks
) as late
-- Checks of data quality that failed, and still count (docs/quality.md).
left join (
    select
        stage, min(severity) as worst,
        jsonb_object_agg(
            suite || '.' || name, jsonb_build_object('severity', severity, 'rows', rows_failed, 'failed_at', as_unix(failed_at))
        ) as checks
    from quality_checks
    where rows_failed > 0 or counts_until > now()
    group by stage
) as quality using (stage);
