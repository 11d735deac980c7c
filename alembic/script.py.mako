"""${message}

A released migration never changes, and never reads a file that may: its SQL stands here as text. Keep each step short on locks (they
time out after 10 s); what cannot run inside a transaction goes in `with op.get_context().autocommit_block():`.
"""

import sqlalchemy as sa
from alembic import op
${imports if imports else ""}
revision, down_revision = ${repr(up_revision)}, ${repr(down_revision)}


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
