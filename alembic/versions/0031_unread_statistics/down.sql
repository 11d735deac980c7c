alter table live_books
    alter column bid_prices set statistics -1,
    alter column bid_sizes set statistics -1,
    alter column ask_prices set statistics -1,
    alter column ask_sizes set statistics -1,
    alter column hash set statistics -1;
alter table book_events
    alter column bid_prices set statistics -1,
    alter column bid_sizes set statistics -1,
    alter column ask_prices set statistics -1,
    alter column ask_sizes set statistics -1,
    alter column hash set statistics -1;
alter table live_books reset (autovacuum_analyze_scale_factor);
alter table live_prices reset (autovacuum_analyze_scale_factor);
