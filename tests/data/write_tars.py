"""Writes tars as Python's tarfile does, one of each format, and what a reader must find in them.

Beside NAME.tar stand NAME.paths of all entries, NAME.classes of the images, and NAME.images, their
bytes one after the other.
"""

import io
import sys
import tarfile
from pathlib import Path

LONG = "a folder with a long name/" * 5  # beyond the 100 bytes of a header
DEEP = "d" * 120 + "/" + "e" * 90  # one that ustar splits in two
FOLDERS = ("dog", "cat", "train")
FILES = {
    "./dog/1.jpg": 700,
    "./cat/b.PNG": 512,
    "train/cat/a.jpeg": 0,
    "eel/ä🙂.jpg": 1025,
    DEEP + "/f.jpg": 3,
    "cat/notes.txt": 5,
    "dog/._1.jpg": 9,
}
LONGER = {**FILES, LONG + "x" * 150 + ".png": 11}


def add(tar, path, kind=tarfile.REGTYPE, content=b""):
    info = tarfile.TarInfo(path)
    info.type = kind
    info.size = len(content)
    tar.addfile(info, io.BytesIO(content))


def write(folder, name, form, files):
    contents = {path: (path.encode() * size)[:size] for path, size in files.items()}
    with tarfile.open(folder / f"{name}.tar", "w", format=form) as tar:
        for path in FOLDERS:
            add(tar, path, tarfile.DIRTYPE)
        for path, content in contents.items():
            add(tar, path, content=content)
    images = [path for path in files if not path.endswith(".txt") and "._" not in path]
    with tarfile.open(folder / f"{name}.tar") as tar:
        paths = [info.name + "/" * info.isdir() for info in tar]
    texts = {
        "paths": "".join(f"{path}\n" for path in paths).encode(),
        "classes": "".join(f"{Path(path).parent.name}\n" for path in images).encode(),
        "images": b"".join(contents[path] for path in images),
    }
    for kind, text in texts.items():
        (folder / f"{name}.{kind}").write_bytes(text)


def main():
    folder = Path(sys.argv[1])
    write(folder, "ustar", tarfile.USTAR_FORMAT, FILES)
    write(folder, "gnu", tarfile.GNU_FORMAT, LONGER)
    write(folder, "pax", tarfile.PAX_FORMAT, LONGER)
    notes = {"comment": "for all entries", "mtime": "12.5"}
    with tarfile.open(folder / "global.tar", "w", format=tarfile.PAX_FORMAT, pax_headers=notes) as tar:
        add(tar, "cat/1.jpg", content=b"x")


main()
