#!/usr/bin/env python3
"""Prints circles of files of a crate: each uses names of the next, and the last those of the first. Also checks that no
file has more than 500 lines.

    ci/circles.py            every crate; fails if there is a circle or a longer file
    ci/circles.py CRATE...   circles of these, with the names that tie each

An arrow goes from the file that uses a name to the file that defines it, through re-exports. Tests are exempt: code
after #[cfg(test)] does not count.
"""

import re
import sys
from pathlib import Path

# Lines of a file, its tests included.
LINES_MAX = 500

ROOT = Path(__file__).resolve().parent.parent
DEFINED = re.compile(
    r"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?(?:default\s+|const\s+|async\s+|unsafe\s+|extern\s+\"C\"\s+)*"
    r"(?:fn|struct|enum|union|trait|type|const|static(?:\s+mut)?)\s+(\w+)|^[ \t]*macro_rules!\s*(\w+)",
    re.M,
)
MODULE = re.compile(r'^[ \t]*((?:#\[[^\]]*\]\s*)*)(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;', re.M)
USE = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);", re.M)
PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")
COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"', re.S)


def without_tests(text):
    """The code, without comments, strings and tests."""
    text = COMMENT.sub(lambda found: '""' if found[0][0] == '"' else "", text)
    while (begin := re.search(r"#\[cfg\((?:test|all\(test\b[^\]]*|any\(test\b[^\]]*|loom|fuzzing)\)*\]", text)):
        at, depth = begin.end(), 0
        while at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
            if depth == 0 and text[at - 1] in ";}":
                break
        text = text[: begin.start()] + text[at:]
    return text


def leaves(tree):
    """`a::{b, c as d}` as (path, name here)."""
    tree = tree.strip()
    brace = tree.find("{")
    if brace < 0:
        path, _, name = tree.partition(" as ")
        parts = [part.strip() for part in path.split("::") if part.strip()]
        if parts and parts[-1] == "self":
            parts.pop()
        if parts:
            yield parts, name.strip() or parts[-1]
        return
    depth, part, inner = 0, "", []
    for letter in tree[brace + 1 : tree.rindex("}")]:
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            inner.append(part)
            part = ""
        else:
            part += letter
    for one in [*inner, part]:
        if one.strip():
            yield from leaves(tree[:brace] + one.strip())


class Module:
    """A file: what it defines, declares and uses."""

    def __init__(self, path, name, parent):
        self.path, self.name, self.parent, self.children = path, name, parent, {}
        self.text = without_tests(path.read_text())
        self.defined = {one or two for one, two in DEFINED.findall(self.text)}
        self.used = {}
        self.globs = []
        for tree in USE.findall(self.text):
            for parts, here in leaves(tree):
                if here == "*":
                    self.globs.append(parts[:-1])
                else:
                    self.used.setdefault(here, parts)
        folder = path.parent if path.name in ("lib.rs", "main.rs", "mod.rs") else path.with_suffix("")
        for attributes, child in MODULE.findall(self.text):
            at = re.search(r'path\s*=\s*""', attributes)
            for file in (folder / f"{child}.rs", folder / child / "mod.rs"):
                if file.is_file() and not at:
                    self.children[child] = Module(file, child, self)

    def all(self):
        yield self
        for child in self.children.values():
            yield from child.all()

    def root(self):
        return self if self.parent is None else self.parent.root()

    def define(self, parts, seen=()):
        """The module that defines the last name of a path that begins here."""
        if not parts:
            return self
        first, rest = parts[0], parts[1:]
        if (id(self), first) in seen:
            return None
        seen = (*seen, (id(self), first))
        if first == "crate":
            return self.root().define(rest, seen)
        if first == "self":
            return self.define(rest, seen)
        if first == "super":
            return self.parent.define(rest, seen) if self.parent else None
        if first in self.children:
            return self.children[first].define(rest, seen)
        if first in self.defined:
            return self
        if first in self.used:
            return self.define(self.used[first] + rest, seen) if self.used[first] != parts else None
        for path in self.globs:
            target = self.define(path, seen)
            if target and target is not self and (found := target.define(parts, seen)):
                return found
        return None

    def arrows(self):
        # Names that a file only re-exports do not count.
        taken, code = {}, USE.sub("", self.text)
        words = set(re.findall(r"\w+", code))
        paths = [parts for name, parts in self.used.items() if name in words]
        paths += [found.split("::") for found in PATH.findall(code)]
        # Names used through a child module of this file: `child::name`.
        for child in self.children:
            paths += [[child, name] for name in re.findall(rf"(?<!::)\b{child}::(\w+)", code)]
        for parts in paths:
            if target := self.define(parts):
                if target is not self and parts[-1] not in target.children:
                    taken.setdefault(target, set()).add(parts[-1])
        return taken


def circles(arrows):
    """Strongly connected components of more than one file (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(node):
        number[node] = low[node] = len(number)
        stack.append(node)
        for target in arrows[node]:
            if target not in number:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], number[target])
        if low[node] == number[node]:
            component = []
            while not component or component[-1] is not node:
                component.append(stack.pop())
            if len(component) > 1:
                found.append(component)

    for node in arrows:
        if node not in number:
            visit(node)
    return found


def check_lengths():
    """Prints the files that are too long, and returns their number."""
    failed = 0
    for folder in ("crates", "python", "examples", "fuzz", "peers"):
        for path in sorted((ROOT / folder).rglob("*.rs")):
            lines = len(path.read_text().splitlines())
            if "target" not in path.parts and lines > LINES_MAX:
                failed += 1
                print(f"{path.relative_to(ROOT)}: {lines} lines, {LINES_MAX} at most: split it by subject")
    return failed


def main():
    sys.setrecursionlimit(10_000)
    chosen, found, failed = sys.argv[1:], {}, 0
    for crate in [*sorted((ROOT / "crates").iterdir()), ROOT / "python"]:
        if chosen and crate.name not in chosen:
            continue
        for top in ("lib.rs", "main.rs"):
            if not (crate / "src" / top).is_file():
                continue
            arrows = {module: module.arrows() for module in Module(crate / "src" / top, "", None).all()}
            for circle in circles(arrows):
                found[crate.name] = found.get(crate.name, 0) + len(circle)
                if not chosen:
                    continue
                print(f"circle of {len(circle)} files in {crate.name}:")
                for module in sorted(circle, key=lambda module: module.path):
                    for target in circle:
                        if names := arrows[module].get(target):
                            here, there = (one.path.relative_to(crate / "src") for one in (module, target))
                            print(f"  {here} -> {there}: {', '.join(sorted(names))}")
    for crate, count in found.items():
        failed += 1
        print(f"{crate}: {count} files in circles: ci/circles.py {crate} shows them")
    print(f"{sum(found.values())} files in circles")
    failed += 0 if chosen else check_lengths()
    print("1 passed, 0 failed" if not failed else f"0 passed, {failed} failed")
    return failed > 0


sys.exit(main())
