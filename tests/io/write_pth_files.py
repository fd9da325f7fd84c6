#!/usr/bin/env python3
"""Write small .pth files of many kinds, and expected.json that says what is in them.

  tests/io/write_pth_files.py FOLDER

good files:  {"file": {"tensors": {name: [dtype, shape, hex of the row-major bytes]},
                       "others": [name]}}
evil files:  in FOLDER/evil; loading one in Python would make FOLDER/evil/marker.
"""

import argparse
import io
import json
import os
import pickle
import struct
import sys
import zipfile
import zlib
from pathlib import Path

import numpy
import torch

DTYPES = {torch.bool: "BOOL", torch.uint8: "U8", torch.int8: "I8", torch.int16: "I16",
          torch.int32: "I32", torch.int64: "I64", torch.float16: "F16", torch.bfloat16: "BF16",
          torch.float32: "F32", torch.float64: "F64"}


def describe(tensor):
    tensor = tensor.detach().contiguous()
    raw = tensor.view(torch.int16) if tensor.dtype == torch.bfloat16 else tensor
    return [DTYPES[tensor.dtype], list(tensor.shape), raw.numpy().tobytes().hex()]


class Folder:
    def __init__(self, path):
        self.path = path
        self.expected = {}

    def save(self, name, value, tensors, others=(), **options):
        torch.save(value, self.path / name, **options)
        self.expect(name, tensors, others)

    def expect(self, name, tensors, others=()):
        self.expected[name] = {"tensors": {key: describe(t) for key, t in tensors.items()},
                               "others": sorted(others)}


def random_model():
    torch.manual_seed(7)
    nn = torch.nn
    return nn.Sequential(nn.Linear(5, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))


def write_wrapped(folder):
    model = random_model()
    sd = model.state_dict()
    other = {key: value + 1 for key, value in sd.items()}
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.randn(8, 5)).square().sum().backward()
    optimizer.step()
    sd = model.state_dict()
    folder.save("bare.pth", sd, sd)
    folder.save("model.pth", {"model": sd, "epoch": 3}, sd)
    full = {"state_dict": sd, "optimizer": optimizer.state_dict(), "epoch": 3, "arch": "tiny",
            "best": 71.5, "history": [1.0, 2.0, 3], "none": None, "big": 2**80,
            "names": {"a", "b"}, "raw": b"\0\1"}
    folder.save("full.pth.tar", full, sd)
    folder.save("twice.pth", {"model": {"state_dict": sd}, "lr": 0.1}, sd)
    folder.save("ema.pth", {"state_dict": other, "model_ema": sd, "model": other}, sd)
    folder.save("ema2.pth", {"model_ema": other, "state_dict_ema": sd}, sd)
    parallel = {"module." + key: value for key, value in sd.items()}
    folder.save("parallel.pth", {"model": parallel}, sd)
    folder.save("half_parallel.pth", {**parallel, "head": torch.ones(1)},
                {**parallel, "head": torch.ones(1)})
    args = argparse.Namespace(lr=0.1, path=Path("/data"), shape=torch.Size([2, 3]),
                              dtype=torch.float32, device=torch.device("cpu"))
    folder.save("args.pth", {"model": sd, "args": args}, sd)
    folder.save("numpy.pth", {"model": sd, "loss": numpy.float64(1.5), "map": numpy.arange(5),
                              "epoch": numpy.int64(3)}, sd)
    folder.save("protocol4.pth", {"model": sd, "args": args}, sd, pickle_protocol=4)
    mixed = {"weight": torch.ones(2), "epoch": 3, "name": "tiny", "shape": torch.Size([1])}
    folder.save("mixed.pth", mixed, {"weight": mixed["weight"]}, ["epoch", "name", "shape"])
    for protocol in (2, 4):
        old = dict(_use_new_zipfile_serialization=False, pickle_protocol=protocol)
        folder.save(f"legacy{protocol}.pth", sd, sd, **old)
        nested = {"state_dict": sd, "optimizer": optimizer.state_dict(), "args": args}
        folder.save(f"legacy_nested{protocol}.pth", nested, sd, **old)


def write_kinds(folder):
    torch.manual_seed(8)
    numbers = torch.randn(3, 4) * 50
    kinds = {str(dtype).split(".")[1]: numbers.abs().to(dtype) for dtype in DTYPES}
    kinds["bool"] = numbers > 0
    kinds["scalar"] = torch.tensor(2.5)
    kinds["empty"] = torch.zeros(0, 3)
    kinds["deep"] = torch.randn(1, 2, 1, 3, 1)
    folder.save("kinds.pth", kinds, kinds)
    folder.save("legacy_kinds.pth", kinds, kinds, _use_new_zipfile_serialization=False)
    base = torch.arange(60.0).view(5, 12)
    views = {"base": base, "turned": base.t(), "column": base[:, 3], "step": base[1::2, ::3],
             "row": base[2], "part": base[1:3, 2:5], "swapped": base.view(5, 3, 4).permute(2, 0, 1)}
    folder.save("views.pth", views, views)
    folder.save("legacy_views.pth", views, views, _use_new_zipfile_serialization=False)
    params = {"p": torch.nn.Parameter(torch.randn(3)),
              "frozen": torch.nn.Parameter(torch.randn(3), requires_grad=False)}
    folder.save("parameters.pth", params, params)
    folder.save("legacy_parameters.pth", params, params, _use_new_zipfile_serialization=False)
    tied = torch.nn.Parameter(torch.randn(4, 2))
    folder.save("tied.pth", {"a": tied, "b": tied}, {"a": tied, "b": tied})


class Record:
    """A stored zip record that lies where it is told to."""

    def __init__(self, name, data, at):
        self.name, self.data, self.at = name.encode(), data, at
        self.crc = zlib.crc32(data)

    def local(self, size):
        extra = struct.pack("<HHQQ", 1, 16, size, size)
        full = 2**32 - 1
        return struct.pack("<IHHHHHIIIHH", 0x04034B50, 45, 0, 0, 0, 0, self.crc, full, full,
                           len(self.name), len(extra)) + self.name + extra

    def directory(self, size):
        extra = struct.pack("<HHQQQ", 1, 24, size, size, self.at)
        full = 2**32 - 1
        return struct.pack("<IHHHHHHIIIHHHHHII", 0x02014B50, 45, 45, 0, 0, 0, 0, self.crc, full,
                           full, len(self.name), len(extra), 0, 0, 0, 0, full) + self.name + extra


def write_zip64(small, large):
    """The file `small` anew with its records past 4 GiB, behind a hole that takes no disk."""
    source = zipfile.ZipFile(small)
    hole = 5 << 30
    with open(large, "wb") as file:
        unused = Record("archive/data/unused", b"", 0)
        file.write(unused.local(hole))
        file.seek(hole, os.SEEK_CUR)
        directory = unused.directory(hole)
        names = source.namelist()
        for name in names:
            record = Record("archive/" + name.split("/", 1)[1], source.read(name), file.tell())
            file.write(record.local(len(record.data)) + record.data)
            directory += record.directory(len(record.data))
        at, count = file.tell(), len(names) + 1
        file.write(directory)
        end64 = file.tell()
        file.write(struct.pack("<IQHHIIQQQQ", 0x06064B50, 44, 45, 45, 0, 0, count, count,
                               len(directory), at))
        file.write(struct.pack("<IIQI", 0x07064B50, 0, end64, 1))
        file.write(struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, 2**16 - 1, 2**16 - 1, 2**32 - 1,
                               2**32 - 1, 0))


class Call:
    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def nested_pickle(depth):
    return b"\x80\x02" + b"]" * depth + b"a" * (depth - 1) + b"."


def write_evil(path):
    path.mkdir()
    marker = str(path / "marker")
    sd = {"weight": torch.ones(2, 2)}
    touch = Call(os.system, "touch " + marker)
    evaluate = Call(eval, f"open({marker!r}, 'w')")
    for container, options in (("zip", {}), ("legacy", {"_use_new_zipfile_serialization": False})):
        def save(name, value):
            torch.save(value, path / f"{container}_{name}.pth", **options)

        save("system", touch)
        save("system_beside", {"model": sd, "epoch": touch})
        save("system_inside", {"model": {**sd, "x": [1, {"y": (touch,)}]}})
        save("eval", {"model": sd, "x": evaluate})
        loop = []
        loop.append(loop)
        save("loop", loop)
        save("expanded", {"weight": torch.ones(1).expand(1000)})
        save("module", torch.nn.Linear(2, 2))
    with zipfile.ZipFile(path / "zip_deep.pth", "w") as archive:
        archive.writestr("archive/data.pkl", nested_pickle(1_000_000))
    magic = torch.serialization.MAGIC_NUMBER
    opening = b"".join(pickle.dumps(part, 2) for part in (magic, 1001, {"little_endian": True}))
    (path / "legacy_deep.pth").write_bytes(opening + nested_pickle(1_000_000) + pickle.dumps([], 2))
    scripted = torch.jit.script(torch.nn.Linear(2, 2))
    scripted.save(str(path / "zip_script.pth"))
    assert not os.path.exists(marker)


def main():
    path = Path(sys.argv[1])
    path.mkdir(parents=True, exist_ok=True)
    folder = Folder(path)
    write_wrapped(folder)
    write_kinds(folder)
    write_zip64(path / "model.pth", path / "zip64.pth")
    folder.expected["zip64.pth"] = folder.expected["model.pth"]
    loop = {"weight": torch.ones(2)}
    loop["self"] = loop
    folder.save("loop.pth", loop, {"weight": loop["weight"]}, ["self"])
    write_evil(path / "evil")
    (path / "expected.json").write_text(json.dumps(folder.expected, indent=1))


if __name__ == "__main__":
    main()
