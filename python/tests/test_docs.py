"""The recipes of the pages on Python run."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

DOCS = pathlib.Path(__file__).parents[2] / "docs"
PAGES = ["python.md", "python-recordings.md", "python-programs.md"]
RECIPES = [
    recipe
    for page in PAGES
    for recipe in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
]


def test_there_are_recipes() -> None:
    assert len(RECIPES) >= 13


@pytest.mark.parametrize("number", range(len(RECIPES)))
def test_recipe(number: int, tmp_path: pathlib.Path) -> None:
    path = tmp_path / f"recipe_{number}.py"
    path.write_text(RECIPES[number])
    done = subprocess.run(
        [sys.executable, "-W", "error", path], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr


def test_recipes_have_types(tmp_path: pathlib.Path) -> None:
    mypy = pytest.importorskip("mypy.api")
    for number, recipe in enumerate(RECIPES):
        (tmp_path / f"recipe_{number}.py").write_text(recipe)
    said, complaint, status = mypy.run(["--strict", "--cache-dir", str(tmp_path / "cache"), str(tmp_path)])
    assert status == 0, said + complaint
