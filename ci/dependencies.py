#!/usr/bin/env python3
"""The foreign packages in the command: their licences, a bill of materials, and the rules of deny.toml.

  ci/dependencies.py check                            the rules, of all targets and features
  ci/dependencies.py notices TARGET FEATURES          the licences of a build, as text
  ci/dependencies.py sbom TARGET FEATURES VERSION     its bill of materials, as CycloneDX
"""

import collections
import datetime
import json
import os
import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def main(words):
    match words:
        case ["check"]:
            sys.exit(check())
        case ["notices", target, features]:
            print(notices(target, features), end="")
        case ["sbom", target, features, version]:
            json.dump(sbom(target, features, version), sys.stdout, indent=1)
            print()
        case _:
            sys.exit(__doc__)


def check():
    """Checks licences, sources and duplicates as cargo-deny does; advisories need its database."""
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    allowed = set(rules["licenses"]["allow"])
    exceptions = {entry["crate"]: set(entry["allow"]) for entry in rules["licenses"].get("exceptions", [])}
    skipped = [entry["crate"].split("@") for entry in rules["bans"]["skip"]]
    registry = rules["sources"]["allow-registry"]
    packages = of_tree("--workspace", "--all-features", "--target", "all", "-e", "normal,build,dev")
    wrong = []
    for package in packages:
        name = f"{package['name']} {package['version']}"
        licence = package["license"] or ""
        if not permitted(licence, allowed | exceptions.get(package["name"], set())):
            wrong.append(f"{name}: licence {licence or 'not stated'}; deny.toml does not allow it")
        if package["source"].removeprefix("registry+") not in registry:
            wrong.append(f"{name}: from {package['source']}")
    versions = collections.defaultdict(set)
    for package in packages:
        versions[package["name"]].add(package["version"])
    second = sum(len(all) - 1 for all in versions.values())
    for name, old in skipped:
        gone = {version for version in versions[name] if version.startswith(old + ".")}
        if not gone or len(versions[name]) == 1:
            wrong.append(f"{name}: deny.toml skips version {old}, which is not a duplicate")
        versions[name] -= gone
    for name, left in sorted(versions.items()):
        if len(left) > 1:
            wrong.append(f"{name}: versions {', '.join(sorted(left))}, and deny.toml skips none of them")
    for line in wrong:
        print(line)
    print(f"{len(packages)} foreign packages, {second} second versions, {len(wrong)} against deny.toml")
    return bool(wrong)


def permitted(expression, allowed):
    """Whether one choice of an SPDX expression is allowed throughout."""
    words = re.findall(r"\(|\)|[^\s()/]+|/", expression)
    # `A WITH B` is one licence.
    while "WITH" in words:
        at = words.index("WITH")
        words[at - 1 : at + 2] = [" ".join(words[at - 1 : at + 2])]

    def either():
        good = both()
        while words and words[0] in ("OR", "/"):
            words.pop(0)
            good = both() or good
        return good

    def both():
        good = one()
        while words and words[0] == "AND":
            words.pop(0)
            good = one() and good
        return good

    def one():
        word = words.pop(0)
        if word != "(":
            return word in allowed
        good = either()
        words.pop(0)
        return good

    return bool(words) and either()


def notices(target, features):
    texts, bare = collections.defaultdict(list), []
    for package in built(target, features):
        name = f"{package['name']} {package['version']} ({package['license'] or 'licence in a file'})"
        files = licence_files(package)
        if not files:
            bare.append(name + (f", {package['repository']}" if package["repository"] else ""))
        for file in files:
            texts[file.read_text(errors="replace").replace("\r\n", "\n").strip()].append(name)
    for name, files in of_toolchain(target).items():
        for file in files:
            texts[file.read_text(errors="replace").strip()].append(name)
    parts = ["This program contains the packages below, under the licences that follow each list."]
    for text, names in sorted(texts.items(), key=lambda item: item[1]):
        parts.append("\n".join(sorted(set(names))) + "\n\n" + text)
    if bare:
        mine = "LICENSE-MIT and LICENSE-APACHE, beside this file, have the texts of MIT and Apache-2.0."
        parts.append("These packages state a licence without its text.\n" + mine + "\n\n" + "\n".join(bare))
    return ("\n\n" + "-" * 80 + "\n\n").join(parts) + "\n"


def licence_files(package):
    folder = pathlib.Path(package["manifest_path"]).parent
    named = [folder / package["license_file"]] if package["license_file"] else []
    found = [file for file in folder.iterdir() if re.match(r"(?i)(li[cs]en[cs]e|copying|notice|unlicense|ofl|ufl)", file.name)]
    inner = [file for folder in found if folder.is_dir() for file in folder.iterdir()]
    fonts = [file for file in folder.glob("fonts/*") if re.search(r"(?i)(ofl|ufl|licen[cs]e)", file.name)]
    return sorted({file for file in named + found + inner + fonts if file.is_file() and file.suffix not in (".rs", ".html")})


def of_toolchain(target):
    """Licences of the toolchain's own parts: Rust's library, and the C library if it is linked statically."""
    rust = pathlib.Path(run("rustc", "--print", "sysroot").strip()) / "share/doc/rust"
    library = f"The library of {run('rustc', '--version').strip()} (MIT OR Apache-2.0)"
    found = {library: [file for file in (rust / "LICENSE-MIT", rust / "LICENSE-APACHE") if file.is_file()]}
    if "musl" in target:
        found["musl (MIT)"] = list(pathlib.Path(sys.prefix).glob("lib/python*/site-packages/ziglang/lib/libc/musl/COPYRIGHT"))
    if "windows-gnu" in target:
        found["The runtime of mingw-w64"] = [file for file in [pathlib.Path("/usr/share/doc/mingw-w64-common/copyright")] if file.is_file()]
    return found


def sbom(target, features, version):
    sums = {(p["name"], p["version"]): p.get("checksum") for p in tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]}
    components = []
    for package in built(target, features):
        name, number = package["name"], package["version"]
        reference = f"pkg:cargo/{name}@{number}"
        component = {"type": "library", "bom-ref": reference, "name": name, "version": number, "purl": reference}
        if package["license"]:
            component["licenses"] = [{"expression": re.sub(r" ?/ ?", " OR ", package["license"].strip())}]
        if sums.get((name, number)):
            component["hashes"] = [{"alg": "SHA-256", "content": sums[name, number]}]
        components.append(component)
    made = datetime.datetime.fromtimestamp(int(os.environ["SOURCE_DATE_EPOCH"]), datetime.UTC)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": made.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": f"pkg:cargo/grebe-cli@{version}",
                "name": "grebe",
                "version": version,
                "purl": f"pkg:cargo/grebe-cli@{version}",
                "properties": [{"name": "target", "value": target}, {"name": "features", "value": features}],
            },
        },
        "components": components,
    }


def built(target, features):
    """The foreign packages whose code is in a build of the command."""
    return of_tree("-p", "grebe-cli", "--no-default-features", "--features", features, "--target", target, "-e", "normal,no-proc-macro")


def of_tree(*choice):
    """The foreign packages of a choice, which `cargo metadata` cannot make."""
    tree = run("cargo", "tree", "--locked", *choice, "--prefix", "none", "--format", "{p}")
    names = {tuple(line.split(" ")[:2]) for line in tree.splitlines() if line}
    all = json.loads(run("cargo", "metadata", "--locked", "--format-version", "1", "--all-features"))["packages"]
    found = [package for package in all if package["source"] and (package["name"], "v" + package["version"]) in names]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def run(*words):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout


if __name__ == "__main__":
    main(sys.argv[1:])
