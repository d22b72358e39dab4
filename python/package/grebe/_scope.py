"""The scope in a notebook: pictures of a stream as it runs."""

from __future__ import annotations

import html
import importlib
import importlib.util
import threading
import time
from types import TracebackType
from typing import Any, Literal, Self

from ._errors import Error, Timeout, UsageError
from ._grebe import StreamScope


class Scope(StreamScope):
    """The scope of a stream, in a notebook: the last line of a cell, and it draws live; or ``scope.show(5)`` draws for 5 seconds.

    grebe draws PNG pictures next to the stream, and sends them as messages of the notebook, also over a remote kernel. The scope
    never holds up the stream. A link of ``grebe serve`` (``serve://HOST:PORT?token=...``) shows the served stream without receiving
    its samples. ``scope.frame()`` shows the served page with all its controls.

    span
        Seconds to show; chosen by the scope by default.
    level, slope, channel
        Trigger: the level in the channel's unit, ``"rising"``, ``"falling"`` or ``"either"``; the channel from 1.
    spectrum, xy
        Also shows the spectrum, or one channel over another (Q over I).
    theme
        ``"dark"`` or ``"light"``.
    history
        Bytes of history.
    timeout
        Seconds to wait for a stream in shared memory that does not exist yet.
    """

    def __new__(
        cls,
        uri: str,
        *,
        span: float | None = None,
        level: float | None = None,
        slope: Literal["rising", "falling", "either"] = "rising",
        channel: int = 1,
        spectrum: bool = False,
        xy: bool = False,
        theme: Literal["dark", "light"] = "dark",
        size: tuple[int, int] = (960, 480),
        history: int = 64 << 20,
        timeout: float | None = None,
    ) -> Self:
        scope = super().__new__(
            cls,
            uri,
            span=span,
            level=level,
            slope=slope,
            channel=channel,
            spectrum=spectrum,
            xy=xy,
            dark=theme != "light",
            history=history,
            timeout=timeout,
        )
        scope._size = size
        scope._span, scope._spectrum, scope._theme = span, spectrum, theme
        scope._stop = threading.Event()
        return scope

    _size: tuple[int, int]
    _span: float | None
    _spectrum: bool
    _theme: str
    _stop: threading.Event

    def show(self, seconds: float | None = None, *, pictures_per_second: float = 5.0) -> None:
        """Draws live below the cell for a duration, or until the stream ends or the cell is interrupted."""
        self._draw(_display(self._picture()), seconds, 1.0 / pictures_per_second, threading.Event())

    def frame(self, width: int | str = "100%", height: int = 520) -> Frame:
        """The page of a served stream in a frame of the notebook. The server must allow the notebook's address by ``grebe serve
        --frame-origin``. The frame's link contains the token, so a shared notebook shares it too.
        """
        if self.page is None:
            raise UsageError("frame() needs grebe serve: open serve://HOST:PORT?token=...")
        return Frame(self._linked(self.page), width, height)

    def _linked(self, page: str) -> str:
        light = "true" if self._theme == "light" else "false"
        said = {"span": self._span, "show.spectrum": "true" if self._spectrum else None, "light": light}
        return page + "".join(f"&{key}={value}" for key, value in said.items() if value is not None)

    def stop(self) -> None:
        """Stops drawing and receiving."""
        self._stop.set()
        self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _repr_png_(self) -> bytes:
        return self.png(*self._size)

    def _ipython_display_(self) -> None:
        """Draws live in the background, until ``stop`` or the end of the stream."""
        handle = _display(self._picture())
        threading.Thread(target=self._draw, args=(handle, None, 0.2, self._stop), daemon=True).start()

    def _picture(self) -> Any:
        if importlib.util.find_spec("IPython") is None:
            raise Error("not in a notebook: use scope.png() to draw a picture")
        display: Any = importlib.import_module("IPython.display")
        return display.Image(data=self._repr_png_(), format="png", width=self._size[0])

    def _draw(self, handle: Any, seconds: float | None, interval: float, stop: threading.Event) -> None:
        end = None if seconds is None else time.monotonic() + seconds
        while not stop.wait(interval) and (end is None or time.monotonic() < end):
            is_last = self.is_ended
            try:
                handle.update(self._picture())
            except Timeout:
                pass
            if is_last:
                return


class Frame:
    """A page in a notebook: the last line of a cell shows it."""

    def __init__(self, page: str, width: int | str, height: int) -> None:
        self.page, self.width, self.height = page, width, height

    def _repr_html_(self) -> str:
        page, width = html.escape(self.page, quote=True), html.escape(str(self.width), quote=True)
        return f'<iframe src="{page}" width="{width}" height="{self.height:d}" style="border: 0" title="grebe"></iframe>'

    def __repr__(self) -> str:
        return f"<grebe.Scope frame of {self.page.split('#')[0]}>"


def _display(picture: Any) -> Any:
    """Shows a replaceable picture."""
    display: Any = importlib.import_module("IPython.display")
    handle = display.display(picture, display_id=True)
    if handle is None:
        raise Error("not in a notebook: use scope.png() to draw a picture")
    return handle
