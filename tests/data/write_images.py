#!/usr/bin/env python3
"""Write JPEG and PNG files of every kind and what PIL makes of them.

  /usr/bin/python3 tests/data/write_images.py FOLDER

images.txt   one line per file: its name, width and height
             beside it NAME.rgb and NAME.grey, the bytes of convert("RGB") and convert("L")
resizes.txt  one line per resize: file of the result, file, channels, width and height of the
             source, filter, width and height of the result
"""

import functools
import io
import random
import struct
import sys
import zlib
from pathlib import Path

from PIL import Image

SIZES = [(1, 1), (1, 7), (37, 53), (500, 333)]
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]
GREY, RGB, PALETTE, GREY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
SAMPLES = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGB_ALPHA: 4}
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}


@functools.cache
def picture(width, height, channels, seed):
    """Gradients with noise on top, and hard edges for filters to overshoot at."""
    noise = random.Random(seed).randbytes(width * height * channels)
    pixels = bytearray(width * height * channels)
    at = 0
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                slope = (x * 255 // width, y * 255 // height, (x + y) * 255 // (width + height), 255 - x % 256)[c]
                edge = 255 * ((x // 9 + y // 11 + c) % 2)
                pixels[at] = edge if (x // 40 + y // 40) % 3 == 0 else (slope * 3 + noise[at]) // 4
                at += 1
    return bytes(pixels)


class Writer:
    def __init__(self, folder):
        self.folder = folder
        self.images = []
        self.resizes = []

    def add(self, name, data, grey_of_16_bits=None):
        """PIL clips grey of 16 bits at 255; what we promise instead is the upper byte."""
        (self.folder / name).write_bytes(data)
        with Image.open(io.BytesIO(data)) as image:
            width, height = image.size
            if grey_of_16_bits is not None:
                image = Image.frombytes("L", image.size, grey_of_16_bits)
            (self.folder / f"{name}.rgb").write_bytes(image.convert("RGB").tobytes())
            (self.folder / f"{name}.grey").write_bytes(image.convert("L").tobytes())
        self.images.append(f"{name} {width} {height}")

    def resize(self, mode, width, height, to):
        channels = len(Image.new(mode, (1, 1)).getbands())
        source = f"{mode}_{width}x{height}.pixels"
        image = Image.frombytes(mode, (width, height), picture(width, height, channels, 5))
        (self.folder / source).write_bytes(image.tobytes())
        for name, kind in FILTERS.items():
            result = f"{mode}_{width}x{height}_{name}_{to[0]}x{to[1]}.pixels"
            (self.folder / result).write_bytes(image.resize(to, kind).tobytes())
            self.resizes.append(f"{result} {source} {channels} {width} {height} {name} {to[0]} {to[1]}")

    def finish(self):
        (self.folder / "images.txt").write_text("\n".join(self.images) + "\n")
        (self.folder / "resizes.txt").write_text("\n".join(self.resizes) + "\n")


def jpeg(mode, width, height, **options):
    channels = {"L": 1, "RGB": 3, "CMYK": 4}[mode]
    image = Image.frombytes(mode, (width, height), picture(width, height, channels, width))
    data = io.BytesIO()
    image.save(data, "JPEG", **options)
    return data.getvalue()


def as_ycck(cmyk):
    """The same numbers, declared to be YCCK: the last byte of Adobe's marker."""
    at = cmyk.index(b"Adobe") + 11
    return cmyk[:at] + b"\x02" + cmyk[at + 1 :]


def as_rgb_jpeg(ycbcr):
    """The same numbers, declared to be RGB: Adobe's marker in the place of JFIF's."""
    after = 4 + struct.unpack(">H", ycbcr[4:6])[0]
    adobe = b"\xff\xee" + struct.pack(">H5sHHHB", 14, b"Adobe", 100, 0, 0, 0)
    return ycbcr[:2] + adobe + ycbcr[after:]


def write_jpegs(writer):
    for width, height in SIZES:
        size = f"{width}x{height}"
        writer.add(f"rgb420_{size}.jpg", jpeg("RGB", width, height, quality=75, subsampling=2))
        writer.add(f"rgb422_{size}.jpg", jpeg("RGB", width, height, quality=90, subsampling=1))
        writer.add(f"rgb444_{size}.jpg", jpeg("RGB", width, height, quality=95, subsampling=0))
        writer.add(f"progressive_{size}.jpg", jpeg("RGB", width, height, progressive=True))
        writer.add(f"grey_{size}.jpg", jpeg("L", width, height))
        writer.add(f"greyprogressive_{size}.jpg", jpeg("L", width, height, progressive=True))
        writer.add(f"cmyk_{size}.jpg", jpeg("CMYK", width, height))
        writer.add(f"ycck_{size}.jpg", as_ycck(jpeg("CMYK", width, height)))
        writer.add(f"rgbjpeg_{size}.jpg", as_rgb_jpeg(jpeg("RGB", width, height, subsampling=0)))


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def packed_rows(samples, width, height, bits, per_pixel):
    """Rows of a pass, each behind its filter byte; `samples` holds one number each."""
    rows = bytearray()
    for y in range(height):
        rows.append(0)
        row = samples[y * width * per_pixel : (y + 1) * width * per_pixel]
        if bits == 16:
            rows += b"".join(struct.pack(">H", s) for s in row)
        else:
            text = "".join(format(s, f"0{bits}b") for s in row)
            text += "0" * (-len(text) % 8)
            rows += int(text, 2).to_bytes(len(text) // 8, "big")
    return bytes(rows)


def png(width, height, bits, kind, samples, interlaced=False, extra=b""):
    per_pixel = SAMPLES[kind]
    rows = b""
    for x0, y0, dx, dy in ADAM7 if interlaced else [(0, 0, 1, 1)]:
        columns = range(x0, width, dx)
        lines = range(y0, height, dy)
        if not columns or not lines:
            continue
        part = [
            samples[(y * width + x) * per_pixel + c] for y in lines for x in columns for c in range(per_pixel)
        ]
        rows += packed_rows(part, len(columns), len(lines), bits, per_pixel)
    header = struct.pack(">IIBBBBB", width, height, bits, kind, 0, 0, int(interlaced))
    body = chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def samples_of(pixels, bits):
    if bits < 16:
        return [p >> (8 - bits) for p in pixels]
    low = random.Random(bits).randbytes(len(pixels))
    return [p * 256 + q for p, q in zip(pixels, low)]


def side_chunks(kind, bits):
    """A palette, and what must not change a pixel: transparency and gamma."""
    gamma = chunk(b"gAMA", struct.pack(">I", 100000))
    if kind == PALETTE:
        return gamma + chunk(b"PLTE", random.Random(7).randbytes(3 << bits)) + chunk(b"tRNS", b"\x00\x80")
    return gamma + (chunk(b"tRNS", b"\x00\x01") if kind == GREY else b"")


def write_pngs(writer):
    depths = {GREY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GREY_ALPHA: (8, 16), RGB_ALPHA: (8, 16)}
    names = {GREY: "grey", RGB: "rgb", PALETTE: "palette", GREY_ALPHA: "greyalpha", RGB_ALPHA: "rgba"}
    for width, height in SIZES[:3]:
        for kind, all_bits in depths.items():
            for bits in all_bits:
                for interlaced in (False, True):
                    pixels = picture(width, height, SAMPLES[kind], bits)
                    samples = samples_of(pixels, bits)
                    name = f"{names[kind]}{bits}{'_interlaced' if interlaced else ''}_{width}x{height}.png"
                    data = png(width, height, bits, kind, samples, interlaced, side_chunks(kind, bits))
                    writer.add(name, data, pixels if kind == GREY and bits == 16 else None)
    data = io.BytesIO()  # with the filters an encoder chooses
    Image.frombytes("RGB", SIZES[3], picture(*SIZES[3], 3, 1)).save(data, "PNG")
    writer.add("rgb8_filtered_500x333.png", data.getvalue())


def write_resizes(writer):
    for mode in ("L", "RGB"):
        for width, height in SIZES:
            down = (max(1, round(width / 3.7)), max(1, round(height / 3.7)))
            for to in (down, (width * 2, height * 2), (1, 1), (width, 23), (23, height), (24, 91)):
                writer.resize(mode, width, height, to)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    writer = Writer(Path(sys.argv[1]))
    write_jpegs(writer)
    write_pngs(writer)
    write_resizes(writer)
    writer.finish()


if __name__ == "__main__":
    main()
