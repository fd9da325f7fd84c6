#!/usr/bin/env python3
"""Real photographs as evaluation crops them with PIL.

  /usr/bin/python3 tests/data/write_sample_inputs.py FOLDER

Unpacks shared/data/imagenet-sample-125.tar, which stands beside the project's folder, and writes for
each NAME.JPEG the 224 x 224 pixels of its middle as NAME.JPEG.rgb: the shorter side resized to 256
with the bicubic filter. names.txt lists the files.
"""

import io
import sys
import tarfile
from pathlib import Path

from PIL import Image

SIZE, SIDE = 224, 256


def evaluated(image):
    short, long = sorted(image.size)
    other = int(SIDE * long / short)
    image = image.resize((other, SIDE) if image.width >= image.height else (SIDE, other), Image.BICUBIC)
    left, top = (int(round((length - SIZE) / 2.0)) for length in image.size)
    return image.crop((left, top, left + SIZE, top + SIZE))


def main():
    folder = Path(sys.argv[1])
    names = []
    archive = Path(__file__).resolve().parents[3] / "shared" / "data" / "imagenet-sample-125.tar"
    with tarfile.open(archive) as tar:
        for member in tar:
            if not member.isfile():
                continue
            data = tar.extractfile(member).read()
            name = Path(member.name).name
            (folder / name).write_bytes(data)
            image = Image.open(io.BytesIO(data)).convert("RGB")
            (folder / f"{name}.rgb").write_bytes(evaluated(image).tobytes())
            names.append(name)
    (folder / "names.txt").write_text("\n".join(names) + "\n")


if __name__ == "__main__":
    main()
