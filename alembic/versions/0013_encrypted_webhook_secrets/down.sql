do $$
begin
    if exists (select from webhooks where secret not like 'whsec\_%' or next_secret not like 'whsec\_%') then
        raise exception 'the release before cannot decrypt webhook secrets' using hint = 'presage rotate webhook-secrets --clear';
    end if;
end
$$;
delete from settings where name = 'webhook_secrets_in_clear';
comment on column webhooks.secret is 'Needed in clear: it signs';
comment on column webhooks.next_secret is 'While secrets are being rotated: both sign';
