alter table live_books
    alter column bid_prices set statistics 0,
    alter column bid_sizes set statistics 0,
    alter column ask_prices set statistics 0,
    alter column ask_sizes set statistics 0,
    alter column hash set statistics 0;
alter table book_events
    alter column bid_prices set statistics 0,
    alter column bid_sizes set statistics 0,
    alter column ask_prices set statistics 0,
    alter column ask_sizes set statistics 0,
    alter column hash set statistics 0;
alter table live_books set (autovacuum_analyze_scale_factor = 1);
alter table live_prices set (autovacuum_analyze_scale_factor = 1);
