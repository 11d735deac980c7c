-- Whoever makes or changes a key, every API process learns of it with the commit: its cache may hold another answer.

create function notify_key_change() returns trigger language plpgsql as $$
begin
    perform pg_notify('presage_keys', concat_ws(' ', tg_op, new.key_id, encode(new.key_hash, 'hex')));
    return null;
end
$$;

create trigger key_changed after insert or update on api_keys for each row execute function notify_key_change();
