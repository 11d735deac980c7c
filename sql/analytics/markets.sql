create view analytics.markets as
select
    market_id, slug, question, status, category, event_id, event_title, series, tags, outcomes, token_ids,
    array(select price * 0.000001 from unnest(outcome_prices) as o (price)) as outcome_prices,
    start_time, end_time, created_at, closed_at, resolved_at, winning_outcome, outcomes[winning_outcome + 1] as winner,
    volume_usd * 0.000001 as volume_usd, volume_24h_usd * 0.000001 as exchange_volume_24h_usd, liquidity_usd * 0.000001 as liquidity_usd,
    tick_size * 0.000001 as tick_size, neg_risk, url, source, first_seen_at, updated_at, exchange
from markets;
comment on view analytics.markets is 'Every market that was ever seen, one row each';
comment on column analytics.markets.market_id is 'Condition id: 0x and 64 hex digits; of Kalshi the ticker; what every other view names a market by';
comment on column analytics.markets.slug is 'Readable name in the exchange''s addresses';
comment on column analytics.markets.question is 'What is bet on';
comment on column analytics.markets.status is 'ACTIVE, CLOSED (no longer traded) or RESOLVED (paid out)';
comment on column analytics.markets.category is 'Lower case';
comment on column analytics.markets.event_id is 'The exchange''s id of the event that the market belongs to';
comment on column analytics.markets.event_title is 'The event in words';
comment on column analytics.markets.series is 'The series that the event belongs to';
comment on column analytics.markets.tags is 'Tags of the event';
comment on column analytics.markets.outcomes is 'Names of the outcomes; an outcome''s number counts from 0, arrays from 1';
comment on column analytics.markets.token_ids is 'Tokens of the outcomes, in the same order; decimal numbers as text';
comment on column analytics.markets.outcome_prices is 'Prices of the outcomes as the exchange told them last, 0 to 1; once resolved, what each pays';
comment on column analytics.markets.start_time is 'Planned start';
comment on column analytics.markets.end_time is 'Planned end';
comment on column analytics.markets.created_at is 'When the exchange listed it';
comment on column analytics.markets.closed_at is 'When it was closed';
comment on column analytics.markets.resolved_at is 'When it was resolved';
comment on column analytics.markets.winning_outcome is 'Number of the outcome that won, from 0; null when unknown or when the payout is shared';
comment on column analytics.markets.winner is 'Name of the outcome that won';
comment on column analytics.markets.volume_usd is 'USD ever traded, as the exchange counts it';
comment on column analytics.markets.exchange_volume_24h_usd is 'USD traded in 24 hours, as the exchange counted it last';
comment on column analytics.markets.liquidity_usd is 'USD in the order book, as the exchange counted it last';
comment on column analytics.markets.tick_size is 'Smallest step of the price';
comment on column analytics.markets.neg_risk is 'Whether the event''s markets share their collateral';
comment on column analytics.markets.url is 'Its page at the exchange';
comment on column analytics.markets.source is 'exchange, tape (recordings) or simulated';
comment on column analytics.markets.first_seen_at is 'When this service first heard of it';
comment on column analytics.markets.updated_at is 'When something stored of it last changed';
comment on column analytics.markets.exchange is 'The exchange that lists it: polymarket or kalshi';
