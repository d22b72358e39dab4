#!/usr/bin/env python3
"""pack.py FOLDER ARCHIVE: a .tar.xz or .zip with the same bytes on every machine, dated SOURCE_DATE_EPOCH."""

import lzma
import os
import pathlib
import sys
import tarfile
import time
import zipfile

folder, archive = map(pathlib.Path, sys.argv[1:])
dated = int(os.environ["SOURCE_DATE_EPOCH"])
files = sorted(path for path in folder.rglob("*") if path.is_file())


def mode(path):
    return 0o755 if path.parent.name == "bin" else 0o644


if archive.suffix == ".zip":
    with zipfile.ZipFile(archive, "w") as to:
        for path in files:
            info = zipfile.ZipInfo(path.relative_to(folder.parent).as_posix(), time.gmtime(dated)[:6])
            info.external_attr = (0o100000 | mode(path)) << 16
            info.create_system = 3
            to.writestr(info, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)
else:
    with lzma.open(archive, "wb", preset=9 | lzma.PRESET_EXTREME) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as to:
        for path in files:
            info = tarfile.TarInfo(path.relative_to(folder.parent).as_posix())
            info.size, info.mtime, info.mode = path.stat().st_size, dated, mode(path)
            with path.open("rb") as content:
                to.addfile(info, content)
print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB, unpacked {sum(path.stat().st_size for path in files) / 1e6:.1f} MB")
