-- Accounts and who owns them: an account belongs to whoever holds its keys, and to an email address once that is verified.

-- name: holder(email)^
-- The account of an email address, whether it is closed, and whether it has a valid key. Its row stays locked until the
-- transaction ends.
select a.account_id, a.closed_at is not null,
    exists (select from api_keys k where k.account_id = a.account_id and k.revoked_at is null)
from accounts a
where a.email = :email
for update;

-- name: create(email, app_name, use_case)$
-- A new account; null if the email address has one.
insert into accounts (email, app_name, use_case) values (:email, :app_name, :use_case)
on conflict (email) do nothing
returning account_id;

-- name: detach(account_id)!
-- Takes an account's email address away, so that a new account can have it.
with spent as (
    delete from account_tokens where account_id = :account_id
)
update accounts set former_email = email, email = 'former ' || account_id where account_id = :account_id;

-- name: renew(account_id)$
-- A new account with the verified email address of an account, which loses it.
with spent as (
    delete from account_tokens where account_id = :account_id
), former as (
    update accounts set former_email = email, email = 'former ' || account_id where account_id = :account_id
    returning former_email, app_name
)
insert into accounts (email, app_name, verified_at) select former_email, app_name, now() from former
returning account_id;

-- name: close_if_keyless(account_id)!
-- Closes an account whose last key was revoked: its email address cannot register again.
update accounts a set closed_at = now()
where a.account_id = :account_id and a.closed_at is null
    and not exists (select from api_keys k where k.account_id = a.account_id and k.revoked_at is null);

-- name: reopen(account_id)!
-- Allows a closed account's email address to register.
update accounts set closed_at = null where account_id = :account_id;

-- name: open_account(email)$
-- The account of an email address, unless it is closed.
select account_id from accounts where email = :email and closed_at is null;

-- name: verify(account_id)!
-- Records that the account's owner receives mail at its address.
update accounts set verified_at = coalesce(verified_at, now()) where account_id = :account_id;

-- name: newest_key(account_id)$
-- The valid key made last.
select key_id from api_keys where account_id = :account_id and revoked_at is null order by key_id desc limit 1;

-- name: put_token(token_hash, account_id, purpose, expires_at)!
-- A token that was mailed.
insert into account_tokens (token_hash, account_id, purpose, expires_at)
values (:token_hash, :account_id, :purpose, :expires_at);

-- name: forget_tokens(now)!
-- Deletes expired tokens.
delete from account_tokens where expires_at <= :now;

-- name: take_token(token_hash, now)^
-- Uses a token up: its account, which stays locked until the transaction ends, its purpose, and whether the address is verified.
with taken as (
    delete from account_tokens where token_hash = :token_hash and expires_at > :now
    returning account_id, purpose
)
select a.account_id, t.purpose, a.verified_at is not null
from taken t
join accounts a using (account_id)
where a.closed_at is null
for update of a;
