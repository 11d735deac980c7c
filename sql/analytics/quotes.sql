create view analytics.quotes as
select
    q.ts, m.market_id, m.slug, q.outcome, m.outcomes[q.outcome + 1] as outcome_name,
    q.bid * 0.000001 as bid, q.ask * 0.000001 as ask, q.mid * 0.000001 as mid, (q.ask - q.bid) * 0.000001 as spread,
    q.bid_size * 0.000001 as bid_size, q.ask_size * 0.000001 as ask_size, m.exchange
from quotes q
join markets m using (market_key);
comment on view analytics.quotes is 'Best prices, one row a change; each stands until the next; always say from when on (ts)';
comment on column analytics.quotes.ts is 'Since when, UTC';
comment on column analytics.quotes.market_id is 'Market';
comment on column analytics.quotes.slug is 'Market, readable';
comment on column analytics.quotes.outcome is 'Number of the outcome, from 0';
comment on column analytics.quotes.outcome_name is 'Name of the outcome';
comment on column analytics.quotes.bid is 'Best price that somebody would pay; null: nobody';
comment on column analytics.quotes.ask is 'Best price that somebody would sell for; null: nobody';
comment on column analytics.quotes.mid is 'Middle of the two';
comment on column analytics.quotes.spread is 'ask less bid';
comment on column analytics.quotes.bid_size is 'Shares wanted at the bid when it became the best; null when unknown';
comment on column analytics.quotes.ask_size is 'Shares offered at the ask when it became the best; null when unknown';
comment on column analytics.quotes.exchange is 'The exchange of the market: polymarket or kalshi';
