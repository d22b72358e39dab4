"""The stubs match the extension module: names, parameters, and defaults."""

from __future__ import annotations

import ast
import inspect
import pathlib
from typing import Any

import grebe
import pytest
from grebe import _grebe

STUB = ast.parse((pathlib.Path(grebe.__file__).parent / "_grebe.pyi").read_text())
CLASSES = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
FUNCTIONS = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
# Python gives these to every class, or to every class that has another of them.
GIVEN = {"__doc__", "__module__", "__new__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__repr__", "__init__"}


def parameters(node: ast.FunctionDef) -> list[tuple[str, str, bool]]:
    """Names, kinds, and which are optional."""
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    required = len(positional) - len(given.defaults)
    found = [(it.arg, "positional", number >= required) for number, it in enumerate(positional)]
    found += [(given.vararg.arg, "rest", True)] if given.vararg else []
    found += [(it.arg, "keyword", default is not None) for it, default in zip(given.kwonlyargs, given.kw_defaults)]
    found += [(given.kwarg.arg, "keywords", True)] if given.kwarg else []
    return [it for it in found if it[0] not in ("self", "cls")]


def real_parameters(function: Any) -> list[tuple[str, str, bool]]:
    kinds = {"VAR_POSITIONAL": "rest", "KEYWORD_ONLY": "keyword", "VAR_KEYWORD": "keywords"}
    found = []
    for it in inspect.signature(function).parameters.values():
        may_be_left_out = it.default is not inspect.Parameter.empty or it.kind.name.startswith("VAR")
        found.append((it.name, kinds.get(it.kind.name, "positional"), may_be_left_out))
    return [it for it in found if it[0] not in ("self", "cls")]


def members(name: str) -> dict[str, ast.FunctionDef]:
    return {node.name: node for node in CLASSES[name].body if isinstance(node, ast.FunctionDef)}


def test_the_module_has_just_what_the_stub_says() -> None:
    real = {name for name in vars(_grebe) if not name.startswith("__")} - {"Memory"}
    assert real == set(CLASSES) | set(FUNCTIONS)
    assert set(grebe.__all__) <= set(dir(grebe))
    public = {name for name in vars(grebe) if not name.startswith("_") and not inspect.ismodule(getattr(grebe, name))}
    assert public - {"annotations"} == set(grebe.__all__) - {"__version__"}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_what_the_stub_says(name: str) -> None:
    assert parameters(FUNCTIONS[name]) == real_parameters(getattr(_grebe, name))


@pytest.mark.parametrize("name", CLASSES)
def test_classes_have_what_the_stub_says(name: str) -> None:
    kind = getattr(_grebe, name)
    stub = members(name)
    assert set(stub) - GIVEN == set(vars(kind)) - GIVEN
    constructor = stub.get("__init__") or stub.get("__new__")
    if constructor is not None:
        assert parameters(constructor) == real_parameters(kind)
    for member, node in stub.items():
        is_property = any(isinstance(it, ast.Name) and it.id == "property" for it in node.decorator_list)
        assert is_property == inspect.isgetsetdescriptor(vars(kind).get(member)), member
        # An exit is given three things, and takes any.
        if not is_property and not member.startswith("__"):
            assert parameters(node) == real_parameters(vars(kind)[member]), member
