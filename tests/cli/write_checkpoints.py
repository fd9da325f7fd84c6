#!/usr/bin/env python3
"""Write checkpoints of real networks as their users save them, and what PyTorch computes from them.

  tests/cli/write_checkpoints.py FOLDER

FOLDER/expected.json: [{"file", "input", "args": what to tell adjoin, "logits": [[..]]}]
"""

import argparse
import json
import os
import struct
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests" / "io")]

import reference_models  # noqa: E402
import write_pth_files  # noqa: E402

VIT = ["--model", "deit_tiny_patch16_224", "--set", "model.img_size=32",
       "--set", "model.patch_size=8", "--set", "model.embed_dim=48", "--set", "model.depth=2",
       "--set", "model.heads=3", "--set", "model.num_classes=7"]
DISTILLED = ["--model", "deit_tiny_distilled_patch16_224", *VIT[2:]]
T2T = ["--model", "t2t_vit_7", "--set", "model.img_size=32", "--set", "model.embed_dim=64",
       "--set", "model.depth=2", "--set", "model.heads=4", "--set", "model.num_classes=7"]
SWIN = ["--model", "swin_tiny_patch4_window7_224.ms_in1k", "--set", "model.img_size=64",
        "--set", "model.window=4", "--set", "model.embed_dim=16", "--set", "model.depth=2,2,2,1",
        "--set", "model.heads=2,2,4,4", "--set", "model.num_classes=7"]


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.float().contiguous().numpy().tobytes()
        header[name] = {"dtype": "F32", "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Folder:
    def __init__(self, path):
        self.path = path
        self.expected = []

    def add(self, name, model, side, args, state=None):
        """Remember what `model` with the values of `state` answers to images of this size."""
        if state is not None:
            model.load_state_dict({key: value.float() if value.is_floating_point() else value
                                   for key, value in state.items()})
        images = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(side))
        write_safetensors(self.path / f"input{side}.safetensors", {"input": images})
        with torch.no_grad():
            logits = model.eval()(images)
        self.expected.append({"file": name, "input": f"input{side}.safetensors", "args": args,
                              "logits": logits.tolist()})

    def save(self, name, value, model, side, args, state=None, **options):
        torch.save(value, self.path / name, **options)
        self.add(name, model, side, args, state)


def write_vit(folder):
    model = reference_models.Vit(48, 2, 3, image=32, patch=8, classes=7)
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(2, 3, 32, 32)).square().sum().backward()
    optimizer.step()
    sd = model.state_dict()
    namespace = argparse.Namespace(lr=5e-4, model="deit", data_path=Path("imagenet"))
    for name, value, options in [
        ("bare.pth", sd, {}),
        ("model.pth", {"model": sd}, {}),
        ("optimizer.pth", {"state_dict": sd, "optimizer": optimizer.state_dict(), "epoch": 9}, {}),
        ("namespace.pth", {"model": sd, "args": namespace}, {}),
        ("parameters.pth", dict(model.named_parameters()), {}),
        ("parallel.pth", {"state_dict": {"module." + k: v for k, v in sd.items()}}, {}),
        ("legacy.pth", {"model": sd}, {"_use_new_zipfile_serialization": False}),
    ]:
        folder.save(name, value, model, 32, VIT, **options)
    write_pth_files.write_zip64(folder.path / "bare.pth", folder.path / "zip64.pth")
    folder.add("zip64.pth", model, 32, VIT)
    for name, dtype in [("half.pth", torch.float16), ("bf16.pth", torch.bfloat16)]:
        narrow = {key: value.to(dtype) for key, value in sd.items()}
        folder.save(name, {"model": narrow}, model, 32, VIT, state=narrow)
    distilled = reference_models.Vit(48, 2, 3, image=32, patch=8, classes=7, distilled=True)
    folder.save("distilled.pth", {"model": distilled.state_dict()}, distilled, 32, DISTILLED)


def write_t2t(folder):
    model = reference_models.T2tVit(64, 2, 4, 2, image=32, classes=7)
    other = {key: value + 1 for key, value in model.state_dict().items()}
    folder.save("t2t.pth.tar", {"state_dict": other, "state_dict_ema": model.state_dict()}, model, 32,
                T2T)


def write_swin(folder):
    model = reference_models.Swin(16, (2, 2, 2, 1), (2, 2, 4, 4), window=4, image=64, classes=7)
    sd = model.state_dict()
    folder.save("swin_official.pth", {"model": sd}, model, 64, SWIN)

    def moved(name):
        if name.startswith("head."):
            return "head.fc." + name[5:]
        if ".downsample." in name:
            return f"layers.{int(name[7]) + 1}{name[8:]}"
        return name

    with_buffers = {moved(name): value for name, value in sd.items()}
    folder.save("swin_timm_0.9.0.pth", with_buffers, model, 64, SWIN)
    buffers = {name for name, _ in model.named_buffers()}
    current = {moved(name): value for name, value in sd.items() if name not in buffers}
    folder.save("swin_timm.pth", current, model, 64, SWIN)
    write_safetensors(folder.path / "swin_timm.safetensors", current)
    folder.add("swin_timm.safetensors", model, 64, SWIN)


def write_hub(folder):
    """A model of the catalog, bare and as a folder of the Hub; images and what they turn into."""
    import numpy
    from PIL import Image

    model = reference_models.Vit(256, 8, 8, image=32, patch=4, classes=10)
    for block in model.blocks:
        block.mlp = reference_models.Mlp(256, 512)
    sd = model.state_dict()
    torch.save(sd, folder.path / "recognised.pth")
    hub = folder.path / "hub"
    hub.mkdir()
    write_safetensors(hub / "model.safetensors", sd)
    mean, std, size = [0.1, 0.2, 0.3], [0.4, 0.5, 0.6], 32
    config = {"architecture": "vit_mini_32", "num_classes": 10, "label_names": ["a dog"] * 10,
              "pretrained_cfg": {"mean": mean, "std": std, "crop_pct": 1.0,
                                 "interpolation": "bilinear", "input_size": [3, size, size]}}
    (hub / "config.json").write_text(json.dumps(config))
    noise = numpy.random.default_rng(1).integers(0, 256, (48, 70, 3), dtype=numpy.uint8)
    for name in ("image.png", "image.jpg"):
        Image.fromarray(noise).save(folder.path / name)
        image = Image.open(folder.path / name).resize((int(size * 70 / 48), size), Image.BILINEAR)
        left = int(round((image.width - size) / 2))
        values = numpy.asarray(image.crop((left, 0, left + size, size)), numpy.float32) / 255
        values = (values - numpy.array(mean, numpy.float32)) / numpy.array(std, numpy.float32)
        images = torch.from_numpy(values.astype(numpy.float32)).permute(2, 0, 1).unsqueeze(0)
        write_safetensors(folder.path / f"{name}.safetensors", {"input": images})


class Evil:
    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


def write_evil(folder):
    """A good state_dict with a command beside it; torch.load would run it."""
    sd = reference_models.Vit(48, 2, 3, image=32, patch=8, classes=7).state_dict()
    evil = Evil(f"touch '{folder.path}/marker'")
    torch.save({"model": sd, "epoch": evil}, folder.path / "evil.pth")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    torch.manual_seed(5)
    torch.set_num_threads(1)
    folder = Folder(Path(sys.argv[1]))
    write_vit(folder)
    write_t2t(folder)
    write_swin(folder)
    write_evil(folder)
    write_hub(folder)
    (folder.path / "expected.json").write_text(json.dumps(folder.expected))


if __name__ == "__main__":
    main()
