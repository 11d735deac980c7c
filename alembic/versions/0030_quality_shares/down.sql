alter table quality_suites drop column groups, drop column from_group;
