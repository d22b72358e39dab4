#!/usr/bin/env python3
"""manifests.py VERSION FOLDER: manifests for Homebrew, Scoop and winget of the archives in FOLDER.

GREBE_DOWNLOADS is the URL of the folder that the archives are uploaded to. Without it there are none.
"""

import hashlib
import json
import os
import pathlib
import sys

version, folder = sys.argv[1], pathlib.Path(sys.argv[2])
downloads = os.environ.get("GREBE_DOWNLOADS", "").rstrip("/")
ABOUT = "Moves, shows, records and ships sampled signals"
HOME = os.environ.get("GREBE_HOME", downloads.split("/releases/")[0])


def main():
    if not downloads:
        print("skipped: manifests for Homebrew, Scoop and winget, because GREBE_DOWNLOADS has no URL")
        return
    homebrew()
    scoop()
    winget()


def homebrew():
    rows = [("on_macos", "on_arm", "aarch64-macos"), ("on_macos", "on_intel", "x86_64-macos"),
            ("on_linux", "on_arm", "aarch64-linux"), ("on_linux", "on_intel", "x86_64-linux")]
    blocks = ""
    for system in ("on_macos", "on_linux"):
        inner = ""
        for on, chip, name in rows:
            file = archive(f"{name}.tar.xz")
            if on == system and file:
                inner += f'    {chip} do\n      url "{url(file)}"\n      sha256 "{checksum(file)}"\n    end\n'
        if inner:
            blocks += f"  {system} do\n{inner}  end\n"
    if blocks:
        (folder / "grebe.rb").write_text(f'''class Grebe < Formula
  desc "{ABOUT}"
  homepage "{HOME}"
  version "{version}"
  license any_of: ["MIT", "Apache-2.0"]
{blocks}
  def install
    bin.install "bin/grebe"
    man1.install Dir["share/man/man1/*.1"]
    bash_completion.install "share/bash-completion/completions/grebe"
    zsh_completion.install "share/zsh/site-functions/_grebe"
    fish_completion.install "share/fish/vendor_completions.d/grebe.fish"
    doc.install "NOTICES.txt"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/grebe --version")
  end
end
''')


def scoop():
    file = archive("x86_64-windows.zip")
    if file:
        manifest = {"version": version, "description": ABOUT, "homepage": HOME, "license": "MIT|Apache-2.0",
                    "architecture": {"64bit": {"url": url(file), "hash": checksum(file)}},
                    "extract_dir": f"grebe-{version}", "bin": "bin\\grebe.exe"}
        (folder / "grebe.scoop.json").write_text(json.dumps(manifest, indent=4) + "\n")


def winget():
    file = archive("x86_64-windows.zip")
    if not file:
        return
    parts = {
        "installer": f"""InstallerType: zip
NestedInstallerType: portable
NestedInstallerFiles:
- RelativeFilePath: grebe-{version}\\bin\\grebe.exe
  PortableCommandAlias: grebe
Installers:
- Architecture: x64
  InstallerUrl: {url(file)}
  InstallerSha256: {checksum(file).upper()}
""",
        "defaultLocale": f"""PackageLocale: en-US
Publisher: grebe
PackageName: grebe
License: MIT OR Apache-2.0
ShortDescription: {ABOUT}
PackageUrl: {HOME}
""",
        "version": "DefaultLocale: en-US\n",
    }
    for kind, text in parts.items():
        name = "grebe.grebe.yaml" if kind == "version" else f"grebe.grebe.{kind if kind == 'installer' else 'locale.en-US'}.yaml"
        (folder / name).write_text(
            f"PackageIdentifier: grebe.grebe\nPackageVersion: {version}\n{text}ManifestType: {kind}\nManifestVersion: 1.9.0\n")


def archive(ending):
    path = folder / f"grebe-{version}-{ending}"
    return path if path.is_file() else None


def url(file):
    return f"{downloads}/{file.name}"


def checksum(file):
    return hashlib.sha256(file.read_bytes()).hexdigest()


main()
