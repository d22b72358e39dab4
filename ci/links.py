#!/usr/bin/env python3
"""Checks the relative links and #anchors in the Markdown files of the tree, and that docs/SUMMARY.md lists every page of docs/ once.
Prints each fault and fails if there is one."""
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINK = re.compile(r"\]\(<?([^)\s>]+)|^\[[^\]]+\]:\s*(\S+)|(?:href|src)=\"([^\"]+)\"")


def main():
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    pages = {ROOT / name: list(prose(ROOT / name)) for name in names.splitlines() if (ROOT / name).is_file()}
    anchors = {page: set(anchors_of(lines)) for page, lines in pages.items()}
    checked, broken = 0, 0
    for page, lines in pages.items():
        for number, line in lines:
            for link in LINK.finditer(re.sub(r"(`+).+?\1", "", line)):
                target = next(filter(None, link.groups()))
                if re.match(r"[a-z][a-z0-9+.-]*:", target):
                    continue
                checked += 1
                path, _, anchor = target.partition("#")
                file = (page.parent / path).resolve() if path else page
                reason = None
                if not file.exists():
                    reason = "no such file"
                elif not file.is_relative_to(ROOT):
                    reason = "outside the tree"
                elif anchor and anchor not in anchors.get(file, ()):
                    reason = "no such heading"
                if reason:
                    broken += 1
                    print(f"{page.relative_to(ROOT)}:{number}: {target}: {reason}")
    summary = ROOT / "docs/SUMMARY.md"
    listed = [(summary.parent / link[1]).resolve() for _, line in pages[summary] for link in LINK.finditer(line)]
    for page in pages:
        if page.is_relative_to(summary.parent) and page != summary:
            checked += 1
            if listed.count(page) != 1:
                broken += 1
                print(f"docs/SUMMARY.md: lists {page.relative_to(ROOT)} {listed.count(page)} times, not once")
    print(f"{checked - broken} passed, {broken} failed")
    sys.exit(broken > 0)


def prose(page):
    """Yields (line number, line) outside code blocks."""
    fence = None
    for number, line in enumerate(page.read_text().splitlines(), 1):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if mark and fence is None:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip(" `~"):
            fence = None
        elif fence is None:
            yield number, line


def anchors_of(lines):
    """The anchors that GitHub makes: of each heading, and explicit ones."""
    seen = {}
    for _, line in lines:
        yield from re.findall(r"<a (?:id|name)=\"([^\"]+)\"", line)
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            count = seen[anchor] = seen.get(anchor, -1) + 1
            yield f"{anchor}-{count}" if count else anchor


main()
