-- A pass over very many rows checks those of some groups of the markets, and the next one those of the groups after them.
alter table quality_suites
    add column from_group integer not null default 0,
    add column groups integer not null default 1000;
comment on column quality_suites.from_group is 'The first of the groups of markets (market_key % 1000) that the last pass checked';
comment on column quality_suites.groups is 'How many groups, in a ring; the others are unchecked until it is their turn';
