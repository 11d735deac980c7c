comment on column webhooks.secret is 'Signs; a Fernet token, or clear text that begins with whsec_';
comment on column webhooks.next_secret is 'Likewise, while secrets are being rotated: both sign';
-- The release before, which may still be running, cannot decrypt. `presage rotate webhook-secrets` encrypts, and ends this.
insert into settings (name, value)
select 'webhook_secrets_in_clear', 'true' where exists (select from accounts)
on conflict (name) do nothing;
