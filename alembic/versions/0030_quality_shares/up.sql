-- A pass over very many rows checks those of a share of the markets, and the next one another share.
alter table quality_suites
    add column shares integer not null default 1,
    add column turn integer not null default 0;
comment on column quality_suites.shares is 'The last pass checked the rows of one in so many markets; the others'' are unchecked';
comment on column quality_suites.turn is 'Of which: market_key % shares';
