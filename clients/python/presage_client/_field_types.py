"""Types of the records' fields: `Literal` and `Records` to type checkers, what they are decoded as to msgspec."""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["Literal", "Records"]

if TYPE_CHECKING:
    from typing import Literal

    from presage_client._record import Records
else:

    class Literal:
        """A value that a newer server adds is a string like the known ones."""

        def __class_getitem__(cls, values: object) -> type[str]:
            return str

    Records = list
