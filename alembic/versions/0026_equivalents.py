"""Pairs of markets of two exchanges, and whether they ask the same question."""

from pathlib import Path

from alembic import op

from sql import timescale

revision, down_revision = "0026", "0025"

FOLDER = Path(__file__).with_suffix("")


def upgrade() -> None:
    op.execute("""
create table equivalents (
    left_key integer not null,
    right_key integer not null,
    verdict text not null,
    clause text,
    detail text not null,
    within text,
    score real not null,
    rules_version smallint not null,
    left_text bigint not null,
    right_text bigint not null,
    judged_at timestamp with time zone not null default now(),
    overruled text,
    overruled_within text,
    overruled_why text,
    overruled_at timestamp with time zone,
    overruled_texts bigint[],
    constraint equivalents_pkey primary key (left_key, right_key),
    constraint equivalents_left_key_fkey foreign key (left_key) references markets (market_key) on delete cascade,
    constraint equivalents_right_key_fkey foreign key (right_key) references markets (market_key) on delete cascade
)
""")
    op.execute("create index equivalents_right_idx on equivalents (right_key)")
    op.execute(
        "comment on table equivalents is "
        "'Markets of two exchanges with similar titles: the left one is Polymarket''s'"
    )
    for column, text in {
        "verdict": "identical, inverted, subset, related, different or unreadable",
        "clause": "The clause that decided; null: every clause is equal",
        "detail": "What it says on either side",
        "within": "left or right: the side whose Yes implies the other''s, of a subset",
        "score": "How alike the titles are, 0 to 100",
        "rules_version": "Of the rules that judged",
        "left_text": "A hash of the text that was judged",
        "right_text": "The same of the other side",
        "overruled": "An operator''s verdict",
        "overruled_within": "left or right, of a subset",
        "overruled_texts": "Hashes of the texts that the operator''s verdict is of",
    }.items():
        op.execute(f"comment on column equivalents.{column} is '{text}'")
    for statement in timescale.statements(FOLDER / "up.sql"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("drop view equivalent_verdicts")
    op.execute("drop function market_text")
    op.execute("drop table equivalents")
    op.execute("delete from settings where name = 'equivalents'")
