-- Order books as they stand.

-- name: of_outcome(market_key, outcome)$
-- The order book of one outcome, if it agrees with the exchange.
select record::text from book_records where market_key = :market_key and outcome = :outcome;

-- name: doubted(market_key, outcome)$
-- Whether there is a book that is not shown, as it disagrees with the exchange's own best prices.
select exists (select from live_books where market_key = :market_key and outcome = :outcome and not verified);
