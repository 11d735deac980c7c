create view analytics.books as
select
    m.market_id, m.slug, b.outcome, m.outcomes[b.outcome + 1] as outcome_name, l.side, l.level,
    l.price * 0.000001 as price, l.size * 0.000001 as size, b.ts, m.exchange
from book_current b
join markets m using (market_key)
cross join lateral (
    select 'bid' as side, level, price, size from unnest(b.bid_prices, b.bid_sizes) with ordinality as bids (price, size, level)
    union all
    select 'ask', level, price, size from unnest(b.ask_prices, b.ask_sizes) with ordinality as asks (price, size, level)
) as l
where b.verified;
comment on view analytics.books is 'Order books as they stand now, one row a level; those in doubt are left out';
comment on column analytics.books.market_id is 'Market';
comment on column analytics.books.slug is 'Market, readable';
comment on column analytics.books.outcome is 'Number of the outcome, from 0';
comment on column analytics.books.outcome_name is 'Name of the outcome';
comment on column analytics.books.side is 'bid or ask';
comment on column analytics.books.level is '1 is the best price of its side';
comment on column analytics.books.price is 'USD a share, 0 to 1';
comment on column analytics.books.size is 'Shares at this price';
comment on column analytics.books.ts is 'When the exchange last changed the book, UTC';
comment on column analytics.books.exchange is 'The exchange of the market: polymarket or kalshi';
