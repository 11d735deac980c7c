"""What a setting's annotation holds."""

from __future__ import annotations

from typing import get_args


def holds(annotation: object, kind: type) -> bool:
    """Say whether an annotation is a type, or has it as a part: of a union, or with a check."""
    return annotation is kind or any(holds(part, kind) for part in get_args(annotation))
