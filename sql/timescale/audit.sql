-- The audit trail is append-only. Chunks past their retention are dropped whole, which fires no trigger.

create function refuse_audit_change() returns trigger language plpgsql as $$
begin
    raise exception 'the audit trail is append-only: % is refused', tg_op using errcode = 'insufficient_privilege';
end
$$;

create trigger append_only before update or delete on audit_log for each row execute function refuse_audit_change();
create trigger append_only_table before truncate on audit_log for each statement execute function refuse_audit_change();

create function keep_ended_key() returns trigger language plpgsql as $$
begin
    insert into ended_keys (key_hash, key_id) values (old.key_hash, old.key_id) on conflict do nothing;
    return null;
end
$$;

create trigger key_ended after update of key_hash on api_keys for each row
when (old.key_hash is distinct from new.key_hash) execute function keep_ended_key();
