"""The files of the lake's days, by which the API reads what has expired in the database."""

from alembic import op

revision, down_revision = "0024", "0023"


def upgrade() -> None:
    op.execute("alter table lake_days add column paths text[]")
    op.execute(
        "comment on column lake_days.paths is "
        "'The day''s files; null: written by an earlier release, which the lake''s job amends'"
    )


def downgrade() -> None:
    op.execute("alter table lake_days drop column paths")
