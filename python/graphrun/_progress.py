"""Progress line of a training run, redrawn in place in a terminal or a notebook."""

import sys
import time
from typing import Any, Optional


def wanted(progress: Optional[bool]) -> bool:
    """Returns whether to show progress. None means: in a notebook or a terminal."""
    return in_notebook() or sys.stderr.isatty() if progress is None else progress


def in_notebook() -> bool:
    shell = sys.modules.get("IPython")
    instance = shell.get_ipython() if shell is not None else None
    return type(instance).__name__ == "ZMQInteractiveShell"


class Progress:
    """Progress line. Call update() with each report and end() after the last. It draws at most ten times a second."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._notebook = in_notebook()
        self._drawn = 0.0
        self._text = ""

    def update(self, report: Any) -> None:
        width = 24
        filled = width * report.epoch // max(report.epochs, 1)
        text = f"{'█' * filled}{'░' * (width - filled)} epoch {report.epoch}/{report.epochs}  loss {report.loss:.6g}"
        if report.validation_loss is not None:
            text += f"  validation {report.validation_loss:.6g}"
        self._text = text + f"  {report.steps_per_second:,.0f} steps/s"
        if time.monotonic() - self._drawn >= 0.1:
            self._draw()

    def _draw(self) -> None:
        self._drawn = time.monotonic()
        if not self._notebook:
            sys.stderr.write("\r\x1b[K" + self._text if sys.stderr.isatty() else self._text + "\n")
            sys.stderr.flush()
            return
        shown = {"text/plain": self._text}
        if self._handle is not None:
            self._handle.update(shown, raw=True)
            return
        from IPython.display import display  # type: ignore[import-not-found]

        self._handle = display(shown, raw=True, display_id=True)

    def end(self) -> None:
        if not self._text:
            return
        self._draw()
        if not self._notebook and sys.stderr.isatty():
            sys.stderr.write("\n")
