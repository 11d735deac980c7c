-- The site's own database queries; everything else it reads from the API.

-- name: renew(key_hash, prefix)$
-- A key for a process of the site: a new one, or one that no process uses any more.
select renew_site_key(:key_hash::bytea, :prefix);

-- name: page_pass_secrets()
-- The secrets that sign page passes, newest first.
select secret from page_pass_secrets() as secret;

-- name: tiers()
-- What each tier allows, the smallest first; null is by agreement.
select tier, credits_month, credits_burst, max_keys, max_webhooks, max_connections
from tiers
order by credits_month nulls last;
