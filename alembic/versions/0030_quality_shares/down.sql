alter table quality_suites drop column turn, drop column shares;
