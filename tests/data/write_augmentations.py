#!/usr/bin/env python3
"""Apply the operations of RandAugment with PIL.

  /usr/bin/python3 tests/data/write_augmentations.py FOLDER

cases.txt  one line per case: file of the result, file, channels, width and height of the source,
           operation, argument, interpolation
Files hold nothing but pixels.
"""

import random
import sys
from pathlib import Path

from PIL import Image, ImageEnhance, ImageOps

SIZES = [(61, 47), (40, 90), (3, 3), (2, 5), (1, 1)]
FILL = {"RGB": (124, 116, 104), "L": 128}
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}


def solarize_add(image, addend):
    table = [min(255, i + addend) if i < 128 else i for i in range(256)]
    return image.point(table * len(image.getbands()))


PLAIN = {
    "AutoContrast": (lambda image, _: ImageOps.autocontrast(image), [0]),
    "Equalize": (lambda image, _: ImageOps.equalize(image), [0]),
    "Invert": (lambda image, _: ImageOps.invert(image), [0]),
    "Posterize": (ImageOps.posterize, [0, 1, 2, 3, 4, 8]),
    "Solarize": (ImageOps.solarize, [0, 1, 26, 128, 230, 256]),
    "SolarizeAdd": (solarize_add, [0, 17, 99, 110]),
}
FACTORS = [0.1, 0.19, 0.5, 0.7312, 1.0, 1.3, 1.81, 1.9]
for name in ("Color", "Contrast", "Brightness", "Sharpness"):
    enhancer = getattr(ImageEnhance, name)
    PLAIN[name] = (lambda image, factor, enhancer=enhancer: enhancer(image).enhance(factor), FACTORS)


def affine(image, matrix, kind):
    return image.transform(image.size, Image.AFFINE, matrix, kind, fillcolor=FILL[image.mode])


MOVING = {
    "Rotate": (lambda image, a, kind: image.rotate(a, kind, fillcolor=FILL[image.mode]),
               [-27.3, -1, 0, 13.7, 30]),
    "ShearX": (lambda image, a, kind: affine(image, (1, a, 0, 0, 1, 0), kind), [-0.3, 0, 0.1234]),
    "ShearY": (lambda image, a, kind: affine(image, (1, 0, 0, a, 1, 0), kind), [-0.3, 0, 0.1234]),
    "TranslateXRel": (lambda image, a, kind: affine(image, (1, 0, a * image.width, 0, 1, 0), kind),
                      [-0.45, 0, 0.111]),
    "TranslateYRel": (lambda image, a, kind: affine(image, (1, 0, 0, 0, 1, a * image.height), kind),
                      [-0.45, 0, 0.111]),
}


def picture(mode, width, height):
    """Slopes of unequal range with noise, so that contrast and histograms have work."""
    noise = random.Random(width * height)
    channels = len(mode) if mode == "RGB" else 1
    values = []
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                slope = (x * 3 + y * (c + 1)) * 150 // (width * 3 + height * 3)
                values.append(min(255, 20 + 10 * c + slope + noise.randrange(40)))
    return Image.frombytes(mode, (width, height), bytes(values))


def main():
    folder = Path(sys.argv[1])
    lines = []

    def add(image, source, name, argument, kind, result):
        target = f"result_{len(lines)}"
        (folder / target).write_bytes(result.tobytes())
        channels = len(image.getbands())
        lines.append(f"{target} {source} {channels} {image.width} {image.height} {name} {argument} {kind}")

    pictures = [(f"{mode}_{w}x{h}", picture(mode, w, h)) for mode in ("RGB", "L") for w, h in SIZES]
    pictures.append(("flat", Image.new("RGB", (9, 8), (10, 200, 31))))
    for source, image in pictures:
        (folder / source).write_bytes(image.tobytes())
        for name, (apply, arguments) in PLAIN.items():
            for argument in arguments:
                add(image, source, name, argument, "bilinear", apply(image, argument))
        for name, (apply, arguments) in MOVING.items():
            for argument in arguments:
                for word, kind in FILTERS.items():
                    add(image, source, name, argument, word, apply(image, argument, kind))
    (folder / "cases.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
