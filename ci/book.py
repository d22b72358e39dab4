#!/usr/bin/env python3
"""Builds the book of docs/ with mdBook into target/book, and checks every link and anchor of its pages.

As mdBook's preprocessor (`ci/book.py preprocess`) it turns links that leave docs/, such as to an example, into links to the
repository, if book.toml has output.html.git-repository-url, otherwise into their words.
"""
import json
import posixpath
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "target/book"


def main():
    mdbook = shutil.which("mdbook") or shutil.which(ROOT / "target/ci/mdbook/bin/mdbook")
    if not mdbook:
        print("skipped: no mdbook: run ci/packages.sh, or cargo install --locked mdbook")
        return
    subprocess.run([mdbook, "build"], cwd=ROOT, check=True)
    pages = {path: Page(path) for path in BOOK.rglob("*.html") if path.name not in ("404.html", "toc.html")}
    checked, broken = 0, 0
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z][a-z0-9+.-]*:", link):
                continue
            checked += 1
            name, _, anchor = link.partition("#")
            file = (path.parent / name).resolve() if name else path
            if not file.is_file() or (anchor and file in pages and anchor not in pages[file].ids):
                broken += 1
                print(f"{path.relative_to(BOOK)}: {link}: no such page or heading")
    print(f"{checked - broken} passed, {broken} failed")
    sys.exit(broken > 0 or checked == 0)


class Page(HTMLParser):
    """The links and the anchors of a page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            elif name == "src" or (name == "href" and tag == "a"):
                self.links.append(value)


def preprocess():
    if "supports" in sys.argv:
        return
    context, book = json.load(sys.stdin)
    repository = context["config"].get("output", {}).get("html", {}).get("git-repository-url")

    def outside(chapter):
        def link(match):
            path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(chapter["path"]), match[2]))
            if path == "docs/SUMMARY.md":
                return match[1]  # the book shows it beside every page
            if path.startswith("docs/"):
                return match[0]
            return f"[{match[1]}]({repository}/blob/HEAD/{path})" if repository else match[1]

        return re.sub(r"\[([^\]]+)\]\(((?:\.\./)+[^)\s]*|SUMMARY\.md)\)", link, chapter["content"])

    def walk(items):
        for chapter in (item["Chapter"] for item in items if isinstance(item, dict) and "Chapter" in item):
            chapter["content"] = outside(chapter)
            walk(chapter["sub_items"])

    walk(book["items"])
    json.dump(book, sys.stdout)


preprocess() if "preprocess" in sys.argv else main()
