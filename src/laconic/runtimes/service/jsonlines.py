"""Structured logs: one JSON object for each line."""

from __future__ import annotations

import json
import logging
import sys
import warnings
from datetime import UTC, datetime

from laconic.terminal import shown

#: What every record has; all else was given with the event.
_USUAL = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonLines(logging.Formatter):
    """Time, level, logger and event, and whatever was said with it."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as one line."""
        fields: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        fields |= {name: value for name, value in vars(record).items() if name not in _USUAL}
        if record.exc_info:
            fields["trace"] = self.formatException(record.exc_info)
        return shown(json.dumps(fields, ensure_ascii=False, default=str))


def log_to_stderr(level: str = "info") -> None:
    """Write what laconic logs, and what it warns of, to stderr at once, a JSON object for each line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logger = logging.getLogger("laconic")
    logger.handlers[:] = [handler]
    logger.setLevel(level.upper())
    logger.propagate = False
    warnings.showwarning = _log_warning


def _log_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    logging.getLogger("laconic").warning(" ".join(str(message).split()), extra={"category": category.__name__})
