create view analytics.signals as
select
    s.ts, m.market_id, m.slug, s.type, s.outcome, s.value, s.threshold, s.score,
    case s.direction when 1 then 'up' when -1 then 'down' end as direction, s.window_s, s.detail, s.found_at, s.signal_id, m.exchange
from signals s
join markets m using (market_key);
comment on view analytics.signals is 'What stood out, one row a signal; docs/signals.md defines each type';
comment on column analytics.signals.ts is 'End of the window that it was found in, UTC';
comment on column analytics.signals.market_id is 'Market';
comment on column analytics.signals.slug is 'Market, readable';
comment on column analytics.signals.type is 'momentum, volume_spike, whale_alert, spread_widening, book_imbalance or price_reversal';
comment on column analytics.signals.outcome is 'Number of the outcome that it is about, from 0';
comment on column analytics.signals.value is 'What was found, in the unit of its type';
comment on column analytics.signals.threshold is 'From where on it counts';
comment on column analytics.signals.score is 'value / threshold';
comment on column analytics.signals.direction is 'up, down or null';
comment on column analytics.signals.window_s is 'Seconds up to ts';
comment on column analytics.signals.detail is 'Figures behind it';
comment on column analytics.signals.found_at is 'When it was stored';
comment on column analytics.signals.signal_id is 'What it is called; the same however often it is found';
comment on column analytics.signals.exchange is 'The exchange of the market: polymarket or kalshi';
