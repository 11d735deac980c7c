"""The file side of a download that resumes."""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING, Self

from presage_client.errors import PresageError

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

    import httpx

RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")


class Download:
    """A temporary file beside the target, renamed when it is whole and removed if it fails."""

    def __init__(self, to: Path, name: str) -> None:
        self.target = to / name if to.is_dir() else to
        self._part = self.target.with_name(f".{self.target.name}.{secrets.token_hex(4)}.part")
        self._file = self._part.open("xb")
        self.write = self._file.write
        self._tag = ""  # of the version whose first bytes the file has; empty if it cannot be resumed
        self._most = 0
        self._attempts = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
            if kind is None:
                self._part.replace(self.target)
        finally:
            self._part.unlink(missing_ok=True)

    def headers(self) -> dict[str, str]:
        """Return the headers of the next request, for what is missing."""
        headers = {"Accept-Encoding": "identity"}  # ranges are of the bytes sent
        if self._tag and self._file.tell():
            headers |= {"Range": f"bytes={self._file.tell()}-", "If-Range": self._tag}
        return headers

    def begin(self, response: httpx.Response) -> None:
        """Continue with a part, or start again with a whole file."""
        if response.status_code == 206:
            sent = RANGE.fullmatch(response.headers.get("Content-Range", ""))
            if sent is None or int(sent[1]) != self._file.tell() or int(sent[2]) + 1 != int(sent[3]):
                raise PresageError("invalid_response", "not the range that was requested", status=206)
            return
        self._file.seek(0)
        self._file.truncate()
        tag = response.headers.get("ETag", "")
        self._tag = "" if tag.startswith("W/") or "Content-Encoding" in response.headers else tag

    def attempt(self) -> int:
        """Return the number of attempts since the last progress, from 0."""
        self._attempts = 0 if self._file.tell() > self._most else self._attempts + 1
        self._most = max(self._most, self._file.tell())
        return self._attempts
