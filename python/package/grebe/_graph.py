"""Graphs of stages, from files or built in Python. Stages may be Python functions."""

from __future__ import annotations

import atexit
import inspect
import json
import pathlib
import re
import tomllib
import weakref
from collections.abc import Callable, Mapping
from os import PathLike
from types import TracebackType
from typing import Any, Self

from ._errors import Error, UsageError
from ._grebe import RunningGraph, check_graph, wait_for_graphs
from ._stream import Policy

Function = Callable[..., Any]


class Graph:
    """Stages and the queues between them, not yet running.

    A stage is one of the kinds of a graph file (``grebe run --kinds`` lists them), or a function. grebe calls the function with
    every ``Block`` and sends its result on: ``None``, an array of channels x samples, a block, or a list of these. An array
    continues the one before. A block keeps its index, so a block that is not sent on becomes a gap. Of a class with a method
    ``process``, each run makes a new object. Its method ``finish`` is called at the end, and may return samples too.
    ``StopIteration`` ends the stage, and a source without other readers.
    """

    def __init__(self) -> None:
        self._stages: list[dict[str, Any]] = []
        self._edges: list[dict[str, Any]] = []
        self._functions: dict[str, Function] = {}
        self._origin = "graph"
        self._text: str | None = None

    @classmethod
    def from_toml(cls, text: str, functions: Mapping[str, Function] | None = None) -> Self:
        """A graph from the text of a graph file. A stage of the kind ``python`` names one of the ``functions``:
        ``params = { function = "threshold" }``.

        Raises ``grebe.UsageError`` with all mistakes.
        """
        graph = cls()
        graph._functions = dict(functions or {})
        graph._text = text
        graph.check()
        read = tomllib.loads(text)
        graph._stages, graph._edges = read.get("stage", []), read.get("edge", [])
        return graph

    @classmethod
    def load(cls, path: str | PathLike[str], functions: Mapping[str, Function] | None = None) -> Self:
        """As ``from_toml``, from a file."""
        path = pathlib.Path(path)
        try:
            text = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise Error(f"cannot read {path}: {error}") from error
        graph = cls.from_toml(text, functions)
        graph._origin = str(path)
        return graph

    def add(self, id: str, stage: str | Function, /, **params: Any) -> str:
        """Adds a stage, and returns its name: of a kind with its parameters, or a function.

        ``rate`` is the samples per second of a function's output, if it differs from the input's.
        """
        if isinstance(stage, str):
            kind = stage
        else:
            self._functions[id] = stage
            kind, params = "python", {"function": id, **params}
        self._text = None
        self._stages.append({"id": id, "kind": kind, **({"params": params} if params else {})})
        return id

    def connect(
        self,
        *stages: str,
        policy: Policy = "block",
        capacity: int | None = None,
        capacity_bytes: int | str | None = None,
        fuse: bool = False,
    ) -> None:
        """Connects each of these stages to the next by a queue: ``graph.connect("source", "louder", "recorder")``.

        A stage with several ports is named with its port (``"merge.b"``). ``policy`` is the action of a full queue, ``capacity``
        its length in batches. ``fuse`` puts both stages on one thread, without a queue.
        """
        if len(stages) < 2:
            raise UsageError("connect two stages, or more")
        queue: dict[str, Any] = {"fuse": True} if fuse else {"policy": policy}
        if capacity is not None:
            queue["capacity"] = capacity
        if capacity_bytes is not None:
            queue["capacity_bytes"] = capacity_bytes
        self._text = None
        self._edges += [{"from": a, "to": b, **queue} for a, b in zip(stages, stages[1:])]

    def to_toml(self) -> str:
        """The graph as a file for ``grebe run``, if no stage is a function."""
        if self._text is not None:
            return self._text
        tables = [("stage", stage) for stage in self._stages] + [("edge", edge) for edge in self._edges]
        lines = [f"[[{name}]]\n" + "".join(f"{key} = {_value(it)}\n" for key, it in table.items()) for name, table in tables]
        return "\n".join(lines)

    def check(self) -> None:
        """Raises ``grebe.UsageError`` with all mistakes that can be found without opening anything."""
        check_graph(self.to_toml(), self._origin, {name: _called(function) for name, function in self._functions.items()})

    def start(self, name: str = "python") -> Running:
        """Opens the stages and starts them. ``grebe top`` shows the graph under ``name``."""
        running = Running()
        self._start(running, name)
        return running

    def run(self, name: str = "python") -> dict[str, Any]:
        """Runs the graph to its end, and returns its counters. Ctrl-C stops it: queued batches are processed, files are closed."""
        # Within the block before it runs: Ctrl-C comes between any two steps.
        with Running() as running:
            self._start(running, name)
            running.join()
        return running.counters()

    def _start(self, running: Running, name: str) -> None:
        _RUNNING.add(running)
        running._start(self.to_toml(), self._origin, name, {key: _called(it) for key, it in self._functions.items()})

    def __repr__(self) -> str:
        return f"<Graph of {len(self._stages)} stages, {len(self._edges)} edges>"


class Running(RunningGraph):
    """A running graph. It ends after all its sources, or by ``stop``.

    A stage that fails ends the graph. ``join``, ``stop`` and the end of a ``with`` raise ``grebe.Error`` with the stage's name. Its
    ``__cause__`` is the function's exception, with its traceback.
    """

    def counters(self) -> dict[str, Any]:
        """Counts so far: ``["stages"]`` by name, and ``["queues"]`` with their drops, in the order of the graph."""
        counters: dict[str, Any] = json.loads(self._counters())
        counters["stages"] = {stage["name"]: stage for stage in counters["stages"]}
        return counters

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except Exception:
            # The first error matters.
            if kind is None:
                raise


def _called(function: Any) -> tuple[Function, Function | None]:
    """The functions for every block and for the end."""
    if not callable(function) and not hasattr(function, "process"):
        raise UsageError(f"{function!r} is not a stage: give the name of a kind, a function, or an object with a method 'process'")
    if inspect.isclass(function):
        function = function()
    process = getattr(function, "process", None)
    if callable(process):
        finish = getattr(function, "finish", None)
        return process, finish if callable(finish) else None
    return function, None


def _value(value: Any) -> str:
    """A value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (str, PathLike)):
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(str(key))} = {_value(it)}" for key, it in value.items()) + " }"
    if hasattr(value, "tolist"):
        return _value(value.tolist())
    try:
        return "[" + ", ".join(_value(it) for it in value) + "]"
    except TypeError:
        raise UsageError(f"{value!r} cannot be a parameter of a stage: a graph file could not say it") from None


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _value(key)


_RUNNING: weakref.WeakSet[Running] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    """Threads must not call Python after the interpreter has ended."""
    for running in list(_RUNNING):
        try:
            running.stop()
        except Exception:
            pass
    wait_for_graphs()
