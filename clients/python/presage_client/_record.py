"""The base of the generated records, and the list that holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex, TypeVar, cast, overload

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

T = TypeVar("T")
SECRETS = {"key", "secret"}  # fields that a repr does not show
MILLISECONDS = {"s": 1000, "ms": 1}  # in one unit of an instant


class Record(msgspec.Struct, kw_only=True):
    """A JSON object of the service. Fields that this version does not know are ignored."""

    INSTANTS: ClassVar[dict[str, str]] = {}  # fields that are Unix times, with their unit: "s" or "ms"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        values = [(name, getattr(self, name)) for name in self.__struct_fields__]
        return [(name, "…" if name in SECRETS and value else value) for name, value in values]

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in self.__rich_repr__())
        return f"{type(self).__name__}({fields})"

    def to_dict(self) -> dict[str, Any]:
        """Return the record as built-in types, as JSON has it."""
        return cast("dict[str, Any]", msgspec.to_builtins(self))


class Records(list[T]):
    """A list of records that turns into a pandas DataFrame."""

    def __init__(self, items: Iterable[T] = (), kind: type | None = None) -> None:
        super().__init__(items)
        self._kind = kind

    @overload
    def __getitem__(self, at: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Records[T]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> T | Records[T]:
        found = super().__getitem__(at)
        return Records(found, self._kind) if isinstance(at, slice) else cast("T", found)  # type: ignore[arg-type]

    def __add__(self, other: list[T]) -> Records[T]:  # type: ignore[override]
        return Records([*self, *other], self._kind)

    def copy(self) -> Records[T]:
        """Return a shallow copy."""
        return Records(self, self._kind)

    def to_pandas(self) -> pd.DataFrame:
        """Return a DataFrame: a column for each field, Unix times as UTC timestamps, nested records as dicts."""
        try:
            import pandas as pd  # noqa: PLC0415 - optional
        except ImportError as missing:
            raise ImportError("to_pandas() needs pandas, which is not installed: pip install pandas") from missing
        if self._kind is None or not issubclass(self._kind, Record):
            return pd.DataFrame(list(self))
        columns: dict[str, Any] = {}
        for name in self._kind.__struct_fields__:
            values = [getattr(record, name) for record in self]
            unit = self._kind.INSTANTS.get(name)
            columns[name] = _plain(values) if unit is None else _timestamps(values, MILLISECONDS[unit])
        return pd.DataFrame(columns)


def _plain(values: list[Any]) -> list[Any]:
    nested = any(isinstance(value, Record | list) for value in values)
    return cast("list[Any]", msgspec.to_builtins(values)) if nested else values


def _timestamps(values: list[int | None], factor: int) -> Any:
    import numpy as np  # noqa: PLC0415 - pandas brings it
    import pandas as pd  # noqa: PLC0415 - optional

    # By numpy: pandas would turn integers beside None into floats, and end at the year 2262.
    whole = np.array([None if value is None else value * factor for value in values], dtype="datetime64[ms]")
    return pd.Series(whole).dt.tz_localize("UTC")
