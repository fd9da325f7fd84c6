#!/usr/bin/env python3
"""Evaluation inputs as torchvision's Resize, CenterCrop, ToTensor and Normalize make them.

  tests/data/write_eval_inputs.py FOLDER

For each case NAME.png, NAME.bin (float32, channels first) and a line of cases.txt:
NAME img_size crop_pct interpolation. Written with PIL and numpy; where torchvision is installed the
script stops unless it gives the very same numbers.
"""

import math
import sys
from pathlib import Path

import numpy
from PIL import Image

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
FILTERS = {"bicubic": Image.BICUBIC, "bilinear": Image.BILINEAR}
CASES = [
    ("wide", 131, 77, 32, 0.9, "bicubic"),
    ("tall", 60, 201, 48, 0.875, "bilinear"),
    ("square", 64, 64, 64, 1.0, "bicubic"),
    ("tiny", 5, 3, 28, 0.95, "bicubic"),
    ("odd", 101, 100, 37, 0.8, "bilinear"),
]


def evaluated(image, size, crop_pct, interpolation):
    side = int(math.floor(size / crop_pct))
    short, long = sorted(image.size)
    other = int(side * long / short)
    wanted = (other, side) if image.width >= image.height else (side, other)
    if wanted != image.size:
        image = image.resize(wanted, FILTERS[interpolation])
    left, top = (int(round((length - size) / 2.0)) for length in image.size)
    image = image.crop((left, top, left + size, top + size))
    values = numpy.asarray(image, numpy.float32).transpose(2, 0, 1) / numpy.float32(255)
    mean, std = (numpy.array(v, numpy.float32)[:, None, None] for v in (MEAN, STD))
    return (values - mean) / std


def by_torchvision(image, size, crop_pct, interpolation):
    try:
        from torchvision import transforms
    except ImportError:
        return None
    steps = transforms.Compose([
        transforms.Resize(int(math.floor(size / crop_pct)),
                          transforms.InterpolationMode[interpolation.upper()]),
        transforms.CenterCrop(size), transforms.ToTensor(), transforms.Normalize(MEAN, STD)])
    return steps(image).numpy()


def main():
    folder = Path(sys.argv[1])
    noise = numpy.random.default_rng(3)
    lines = []
    for name, width, height, *settings in CASES:
        image = Image.fromarray(noise.integers(0, 256, (height, width, 3), dtype=numpy.uint8))
        image.save(folder / f"{name}.png")
        values = evaluated(image, *settings)
        other = by_torchvision(image, *settings)
        if other is not None and numpy.abs(values - other).max() > 1e-6:
            sys.exit(f"{name}: torchvision differs by {numpy.abs(values - other).max()}")
        (folder / f"{name}.bin").write_bytes(values.astype("<f4").tobytes())
        lines.append(" ".join([name, *map(str, settings)]))
    (folder / "cases.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
