"""Structured logging, the same in every process: one JSON object per line with its request or run ID, or plain text.

A process calls `configure` once at startup. If the embedding program (pytest, a script) has set up logging, it is kept.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

import structlog

from config import settings

if TYPE_CHECKING:
    from types import TracebackType

    from structlog.typing import EventDict, Processor

Format = Literal["json", "text"]
OURS = ("api", "cli", "orchestration", "presage", "sql", "upstream")

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The request that this greenlet or task handles."""

_of_process: dict[str, Any] = {}


def configure(process: str) -> None:
    """Log to stderr in the format from the settings, with this process's name on each line."""
    bind(process=process)
    root = logging.getLogger()
    if any(not _by_default(handler) for handler in root.handlers):
        return
    root.handlers.clear()
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter(settings.get().log_format))
    root.addHandler(handler)
    root.setLevel(logging.WARNING)  # libraries log every request, with addresses that may contain keys
    for name in OURS:
        logging.getLogger(name).setLevel(logging.INFO)
    for name in ("dagster", "uvicorn"):  # their command lines install own handlers: no line twice
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True
    logging.getLogger("uvicorn.access").disabled = True  # it writes whole addresses: keys, sessions of MCP
    logging.captureWarnings(capture=True)
    sys.excepthook = _died
    threading.excepthook = lambda failure: _died(
        failure.exc_type, failure.exc_value, failure.exc_traceback, failure.thread
    )


def bind(**known: Any) -> None:
    """Bind fields, such as the run and the job, to all further log lines of this process."""
    _of_process.update(known)


def formatter(format_: Format) -> logging.Formatter:
    """Return a formatter that renders our own and library log records in one format."""
    last: list[Processor]
    if format_ == "json":
        last = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        last = [structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)]
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=[
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.stdlib.add_log_level,
            structlog.stdlib.add_logger_name,
            structlog.stdlib.ExtraAdder(allow=["audit"]),
            _belonging,
            _of_a_run,
            _of_a_request,
        ],
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        pass_foreign_args=True,
    )


def readable(line: str) -> str:
    """Render a JSON log line as readable text; return any other line unchanged."""
    try:
        record = json.loads(line)
        said = f"{record['level'].upper()}: {record['event']}"
    except (ValueError, TypeError, KeyError, AttributeError):
        return line
    return "\n".join([said, *([record["exception"]] if "exception" in record else [])])


def _by_default(handler: logging.Handler) -> bool:
    # The handler that `logging.warning` adds to the root if it is called before logging is set up; Dagster does so.
    return type(handler) is logging.StreamHandler and getattr(handler.formatter, "_fmt", "") == logging.BASIC_FORMAT


def _belonging(_logger: Any, _method: str, event: EventDict) -> EventDict:
    event.update(_of_process)
    event["pid"] = event["_record"].process
    if (request := request_id.get()) is not None:
        event["request_id"] = request
    return event


def _of_a_run(_logger: Any, _method: str, event: EventDict) -> EventDict:
    # Dagster's own name for what a step logs; the message itself is in a separate field.
    if (meta := getattr(event["_record"], "dagster_meta", None)) is not None:
        event["event"] = meta["orig_message"]
        known = {"run_id": meta["run_id"], "job": meta["job_name"], "step": meta["step_key"]}
        error = getattr(getattr(meta["dagster_event"], "event_specific_data", None), "error", None)
        known["exception"] = None if error is None else error.to_string()
        event.update({name: value for name, value in known.items() if value is not None})
    return event


def _of_a_request(_logger: Any, _method: str, event: EventDict) -> EventDict:
    # gunicorn's access log: its positional parts, under descriptive field names.
    parts = event.pop("positional_args", None)
    if event["_record"].name == "gunicorn.access" and isinstance(parts, dict):
        event.update(
            event=f"{parts['m']} {parts['U']} {parts['s']}",
            method=parts["m"],
            path=parts["U"],
            query=parts["q"],
            status=int(parts["s"]),
            bytes=parts["B"],
            microseconds=parts["D"],
            remote=parts["h"],
            agent=parts["a"],
        )
    return event


def _died(
    kind: type[BaseException],
    error: BaseException | None,
    trace: TracebackType | None,
    thread: threading.Thread | None = None,
) -> None:
    if error is None or issubclass(kind, (KeyboardInterrupt, SystemExit)):
        sys.__excepthook__(kind, error or kind(), trace)
        return
    whose = "uncaught exception" if thread is None else f"uncaught exception in thread {thread.name}"
    logging.getLogger("presage").critical(whose, exc_info=(kind, error, trace))
