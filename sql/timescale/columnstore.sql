-- After a week a day's chunk is turned into columns, a market and outcome together. Late rows still go in, only slower.

alter table trades set (
    timescaledb.enable_columnstore, timescaledb.segmentby = 'market_key, outcome', timescaledb.orderby = 'ts desc, seq desc'
);
alter table quotes set (
    timescaledb.enable_columnstore, timescaledb.segmentby = 'market_key, outcome', timescaledb.orderby = 'ts desc'
);
alter table book_events set (
    timescaledb.enable_columnstore, timescaledb.segmentby = 'market_key, outcome', timescaledb.orderby = 'ts desc, seq desc'
);

call add_columnstore_policy('trades', after => interval '7 days');
call add_columnstore_policy('quotes', after => interval '7 days');
call add_columnstore_policy('book_events', after => interval '7 days');
