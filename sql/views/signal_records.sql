-- Signals as the API shows them, and the stream tells them.
create view signal_records as
select
    s.market_key, s.outcome, s.ts, s.type, s.score, s.signal_id,
    signal_record(
        s.signal_id, s.type, m.market_id, s.outcome, s.value, s.threshold, s.score, s.direction, s.window_s, s.detail, s.ts
    ) as record,
    m.exchange
from signals s
join markets m using (market_key);
