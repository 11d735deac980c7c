"""New and changed keys are notified to the API's processes."""

from alembic import op

revision, down_revision = "0014", "0013"


def upgrade() -> None:
    op.execute("""
create function notify_key_change() returns trigger language plpgsql as $$
begin
    perform pg_notify('presage_keys', concat_ws(' ', tg_op, new.key_id, encode(new.key_hash, 'hex')));
    return null;
end
$$
""")
    op.execute(
        "create trigger key_changed after insert or update on api_keys for each row execute function notify_key_change()"
    )


def downgrade() -> None:
    op.execute("drop trigger key_changed on api_keys")
    op.execute("drop function notify_key_change()")
