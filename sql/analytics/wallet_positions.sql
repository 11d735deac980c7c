create view analytics.wallet_positions as
select
    '0x' || encode(p.wallet, 'hex') as wallet, m.market_id, m.slug, t.outcome, m.outcomes[t.outcome + 1] as outcome_name,
    p.buys, p.bought * 0.000001 as bought, p.bought_usd * 0.000001 as bought_usd,
    p.sells, p.sold * 0.000001 as sold, p.sold_usd * 0.000001 as sold_usd, p.held * 0.000001 as held,
    p.covered * 0.000001 as covered, p.cost_usd * 0.000001 as cost_usd, p.realized_usd * 0.000001 as realized_usd,
    mark.price * 0.000001 as mark_price, (p.covered * 0.000001 * mark.price - p.cost_usd) * 0.000001 as unrealized_usd,
    p.left_out, p.first_trade, p.last_trade
from wallet_positions p
join chain_tokens c using (token_key)
left join tokens t using (token_id)
left join markets m using (market_key)
left join live_prices l on l.market_key = m.market_key and l.outcome = t.outcome
cross join lateral (
    -- As in marked_positions.
    select coalesce(
        case when m.status = 'RESOLVED' then m.outcome_prices[t.outcome + 1] end,
        market_price(l.bid, l.ask, l.mid, l.last), m.outcome_prices[t.outcome + 1]
    ) as price
) as mark
where not p.base;
comment on view analytics.wallet_positions is 'What each wallet has traded, holds and has earned of an outcome, by average cost; some minutes behind the chain';
comment on column analytics.wallet_positions.wallet is 'Address, 0x and 40 hex digits in lower case';
comment on column analytics.wallet_positions.market_id is 'Market; null while the catalogue does not know the token';
comment on column analytics.wallet_positions.slug is 'Market, readable';
comment on column analytics.wallet_positions.outcome is 'Number of the outcome, from 0';
comment on column analytics.wallet_positions.outcome_name is 'Name of the outcome';
comment on column analytics.wallet_positions.buys is 'Fills that bought';
comment on column analytics.wallet_positions.bought is 'Shares bought';
comment on column analytics.wallet_positions.bought_usd is 'USD paid for them';
comment on column analytics.wallet_positions.sells is 'Fills that sold';
comment on column analytics.wallet_positions.sold is 'Shares sold';
comment on column analytics.wallet_positions.sold_usd is 'USD got for them';
comment on column analytics.wallet_positions.held is 'Shares held, by all that is known; below 0: some came from before what is indexed';
comment on column analytics.wallet_positions.covered is 'Shares of those held whose cost is known';
comment on column analytics.wallet_positions.cost_usd is 'What the covered ones cost, by average';
comment on column analytics.wallet_positions.realized_usd is 'Earned (below 0: lost) with what was sold, merged or redeemed';
comment on column analytics.wallet_positions.mark_price is 'What a share is worth: once resolved what it pays, until then the live price, or else what the exchange last said';
comment on column analytics.wallet_positions.unrealized_usd is 'What the covered ones are worth by it, less their cost; null without a price';
comment on column analytics.wallet_positions.left_out is 'Rows left out of the cost, in whole or in part';
comment on column analytics.wallet_positions.first_trade is 'First trade; null: never traded';
comment on column analytics.wallet_positions.last_trade is 'Last trade';
