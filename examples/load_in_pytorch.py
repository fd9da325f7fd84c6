#!/usr/bin/env python3
"""A small model made by adjoin as a plain PyTorch module (ViT and DeiT).

  examples/load_in_pytorch.py MODEL.safetensors [INPUT.safetensors]

Prints {"logits": [[...]]} for the tensor `input` (B, C, H, W) of the second file, or for one random
image, and the five best classes on stderr. Needs torch alone; copy what you need.
"""

import json
import math
import sys
from pathlib import Path

import torch
from torch import nn

DTYPES = {"F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


def read_safetensors(path):
    """The tensors of a file by name, in float32, and its metadata."""
    data = bytearray(Path(path).read_bytes())
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, info in header.items():
        dtype, shape = DTYPES[info["dtype"]], info["shape"]
        offset = start + info["data_offsets"][0]
        flat = torch.frombuffer(data, dtype=dtype, count=math.prod(shape), offset=offset)
        tensors[name] = flat.view(shape).float()
    return tensors, metadata


class Block(nn.Module):
    """heads * head_dim need not be the width of the network."""

    def __init__(self, dim, spec, qkv_bias, eps):
        super().__init__()
        self.heads, inner = spec["heads"], spec["heads"] * spec["head_dim"]
        self.norm1, self.norm2 = nn.LayerNorm(dim, eps), nn.LayerNorm(dim, eps)
        qkv, proj = nn.Linear(dim, 3 * inner, bias=qkv_bias), nn.Linear(inner, dim)
        self.attn = nn.ModuleDict({"qkv": qkv, "proj": proj})
        fc1, fc2 = nn.Linear(dim, spec["hidden"]), nn.Linear(spec["hidden"], dim)
        self.mlp = nn.ModuleDict({"fc1": fc1, "fc2": fc2})

    def attention(self, x):
        q, k, v = self.attn["qkv"](x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        weights = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1)
        return self.attn["proj"]((weights @ v).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp["fc2"](nn.functional.gelu(self.mlp["fc1"](self.norm2(x))))


class Vit(nn.Module):
    """The network a spec describes; parameters have timm's names."""

    def __init__(self, spec):
        super().__init__()
        dim, eps, patch = spec["embed_dim"], spec["norm_eps"], spec["patch_size"]
        self.spec, self.prefix = spec, 2 if spec["distilled"] else 1
        tokens = self.prefix + (spec["img_size"] // patch) ** 2
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, tokens, dim), spec["pos_embed"] == "learned")
        self.patch_embed = nn.ModuleDict({"proj": nn.Conv2d(spec["in_chans"], dim, patch, patch)})
        self.blocks = nn.ModuleList(Block(dim, b, spec["qkv_bias"], eps) for b in spec["blocks"])
        self.norm, self.head = nn.LayerNorm(dim, eps), nn.Linear(dim, spec["num_classes"])
        if spec["distilled"]:
            self.dist_token = nn.Parameter(torch.zeros(1, 1, dim))
            self.head_dist = nn.Linear(dim, spec["num_classes"])

    def forward(self, images):
        x = self.patch_embed["proj"](images).flatten(2).transpose(1, 2)
        tokens = [self.cls_token, self.dist_token] if self.prefix == 2 else [self.cls_token]
        x = torch.cat([token.expand(len(x), -1, -1) for token in tokens] + [x], 1) + self.pos_embed
        outputs = []
        for i, block in enumerate(self.blocks):
            x = x + sum(outputs[s["from"]] for s in self.spec["skips"] if s["to"] == i)
            x = block(x)
            outputs.append(x)
        x = self.norm(x)
        mean = x[:, self.prefix :].mean(1)
        read = [x[:, i] if self.spec["pool"] == "token" else mean for i in range(self.prefix)]
        heads = [self.head, self.head_dist] if self.prefix == 2 else [self.head]
        return sum(head(token) for head, token in zip(heads, read)) / len(heads)


def load(path):
    tensors, metadata = read_safetensors(path)
    spec = json.loads(metadata["adjoin.spec"])
    blocks = spec.get("blocks", [])
    plain = all((b["norm"], b["mixer"], b["shortcut"]) == ("pre", {"kind": "softmax"}, None) for b in blocks)
    if spec["family"] != "vit" or not plain:
        sys.exit(f"{path}: this example knows ViT and DeiT of plain blocks; it is a {spec['family']}")
    model = Vit(spec)
    model.load_state_dict(tensors, strict=True)
    return model.eval()


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: load_in_pytorch.py MODEL.safetensors [INPUT.safetensors]")
    model = load(sys.argv[1])
    if len(sys.argv) == 3:
        images = read_safetensors(sys.argv[2])[0]["input"]
    else:
        images = torch.randn(1, model.spec["in_chans"], *[model.spec["img_size"]] * 2)
    with torch.no_grad():
        logits = model(images)
    for i, row in enumerate(logits.softmax(-1)):
        best = row.topk(min(5, len(row)))
        pairs = zip(best.indices.tolist(), best.values.tolist())
        print(f"image {i}:", ", ".join(f"class {c} {p:.1%}" for c, p in pairs), file=sys.stderr)
    print(json.dumps({"logits": logits.tolist()}))
