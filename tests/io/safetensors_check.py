#!/usr/bin/env python3
"""A second reader and writer of safetensors files, apart from the C++ one; no numpy, no torch.

  safetensors_check.py dump FILE       {"metadata": .., "tensors": {name: {dtype, shape, crc32}}}
  safetensors_check.py check FILE      silent, or one sentence about the first broken rule
  safetensors_check.py rewrite IN OUT  the same tensors and metadata in an order of its own

A file is: 8 bytes, the length of the header as a little-endian unsigned integer; the header, a JSON
object in UTF-8, padded with spaces; the bytes of the tensors, little-endian and row-major, without
holes, overlaps or anything behind. `data_offsets` count from the end of the header. The key
`__metadata__` holds text by text. `check` also asks for what the reference writer does and a reader
that maps the file relies on: tensor bytes begin at a multiple of 8, every tensor at one of its item
size. dump and rewrite do not need that.

Exit codes: 0 good, 1 a broken file, 2 wrong usage.
"""

import json
import struct
import sys
import zlib

ITEM_SIZE = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3"), 1),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 2),
    **dict.fromkeys(("U32", "I32", "F32"), 4),
    **dict.fromkeys(("U64", "I64", "F64"), 8),
}
MAX_HEADER = 100_000_000
FIELDS = {"dtype", "shape", "data_offsets"}


class Broken(Exception):
    pass


def need(condition, sentence):
    if not condition:
        raise Broken(sentence)


def unique(pairs):
    """A JSON object that has every key once."""
    value = {}
    for key, item in pairs:
        need(key not in value, f"the header has {key!r} twice")
        value[key] = item
    return value


def is_size(value):
    return type(value) is int and 0 <= value < 2**48


def no_constant(word):
    raise Broken(f"the header holds {word}, which is not JSON")


def read_header(data):
    """The JSON object of the header, and where the tensor bytes begin."""
    need(len(data) >= 8, f"the file has {len(data)} bytes, too few for the length of a header")
    (length,) = struct.unpack("<Q", data[:8])
    need(length <= MAX_HEADER, f"the header says it has {length} bytes, more than {MAX_HEADER}")
    start = 8 + length
    need(start <= len(data), f"the header says it ends at {start}, the file at {len(data)}")
    raw = data[8:start]
    need(raw[:1] == b"{", "the header does not begin with {")
    need(raw.rstrip(b" ")[-1:] == b"}", "the header does not end with } and spaces")
    try:
        header = json.loads(raw.decode(), object_pairs_hook=unique, parse_constant=no_constant)
        json.dumps(header, ensure_ascii=False).encode()  # "\ud800" passes for JSON in Python alone
    except UnicodeError:
        raise Broken("the header is not UTF-8") from None
    except ValueError as error:
        raise Broken(f"the header is not JSON: {error}") from None
    except RecursionError:
        raise Broken("the header is nested too deeply") from None
    return header, start


def read_info(name, info):
    """dtype, shape, begin and end of one tensor."""
    need(isinstance(info, dict), f"tensor {name!r} is not described by an object")
    fields = ", ".join(sorted(info))
    need(set(info) == FIELDS, f"tensor {name!r} has the fields {fields or 'none'}")
    dtype, shape, offsets = info["dtype"], info["shape"], info["data_offsets"]
    known = isinstance(dtype, str) and dtype in ITEM_SIZE
    need(known, f"tensor {name!r} has the unknown dtype {dtype!r}")
    sizes = isinstance(shape, list) and all(map(is_size, shape))
    need(sizes, f"tensor {name!r} has the shape {shape!r}")
    pair = isinstance(offsets, list) and len(offsets) == 2 and all(map(is_size, offsets))
    need(pair, f"tensor {name!r} has the data_offsets {offsets!r}")
    size = ITEM_SIZE[dtype]
    for extent in shape:
        size *= extent
    begin, end = offsets
    sentence = f"tensor {name!r} needs {size} bytes for {dtype} {shape}, and has {end - begin}"
    need(end - begin == size, sentence)
    return dtype, shape, begin, end


def read(path, aligned=False):
    """(metadata, {name: (dtype, shape, bytes)}); raises Broken."""
    with open(path, "rb") as file:
        data = file.read()
    header, start = read_header(data)
    metadata = header.pop("__metadata__", {})
    texts = isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())
    need(texts, "__metadata__ is not an object of texts")

    infos = {name: read_info(name, info) for name, info in header.items()}
    at = 0
    for name, (_, _, begin, end) in sorted(infos.items(), key=lambda item: item[1][2:]):
        need(begin >= at, f"tensor {name!r} overlaps the one before it by {at - begin} bytes")
        need(begin == at, f"there is a hole of {begin - at} bytes before tensor {name!r}")
        at = end
    missing = start + at - len(data)
    need(missing <= 0, f"the file ends {missing} bytes before its last tensor")
    need(missing == 0, f"there are {-missing} bytes behind the last tensor")

    if aligned:
        need(start % 8 == 0, f"the tensor bytes begin at {start}, not at a multiple of 8")
        for name, (dtype, _, begin, _) in infos.items():
            size = ITEM_SIZE[dtype]
            sentence = f"tensor {name!r} begins at {start + begin}, not at a multiple of {size}"
            need((start + begin) % size == 0, sentence)
    tensors = {
        name: (dtype, shape, data[start + begin : start + end])
        for name, (dtype, shape, begin, end) in infos.items()
    }
    return metadata, tensors


def write(path, metadata, tensors):
    """Large items first, then by name, so that every tensor is aligned."""
    order = sorted(tensors, key=lambda name: (-ITEM_SIZE[tensors[name][0]], name))
    header, at = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name in order:
        dtype, shape, data = tensors[name]
        offsets = [at, at + len(data)]
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": offsets}
        at += len(data)
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name in order:
            file.write(tensors[name][2])


def dump(path):
    metadata, tensors = read(path)
    described = {
        name: {"dtype": dtype, "shape": shape, "crc32": zlib.crc32(data)}
        for name, (dtype, shape, data) in sorted(tensors.items())
    }
    print(json.dumps({"metadata": metadata, "tensors": described}))


def check(path):
    read(path, aligned=True)


def rewrite(source, target):
    write(target, *read(source))


def main(args):
    commands = {"dump": (dump, 1), "check": (check, 1), "rewrite": (rewrite, 2)}
    command, count = commands.get(args[0] if args else "", (None, None))
    if len(args) - 1 != count:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        command(*args[1:])
    except (Broken, OSError) as error:
        print(f"{args[1]}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
