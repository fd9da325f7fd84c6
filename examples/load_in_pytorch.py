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

DTYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}


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


class Attention(nn.Module):
    """heads * head_dim need not be the width of the network."""

    def __init__(self, dim, heads, head_dim, qkv_bias):
        super().__init__()
        self.heads, self.head_dim = heads, head_dim
        self.qkv = nn.Linear(dim, 3 * heads * head_dim, bias=qkv_bias)
        self.proj = nn.Linear(heads * head_dim, dim)

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, self.head_dim).permute(2, 0, 3, 1, 4)
        attn = (q @ k.transpose(-2, -1) * self.head_dim**-0.5).softmax(-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(b, n, -1))


class Mlp(nn.Sequential):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1, self.act, self.fc2 = nn.Linear(dim, hidden), nn.GELU(), nn.Linear(hidden, dim)


class Block(nn.Module):
    def __init__(self, dim, block, qkv_bias, eps):
        super().__init__()
        if (block["norm"], block["mixer"], block["shortcut"]) != ("pre", {"kind": "softmax"}, None):
            raise ValueError(f"this example knows plain blocks only, not {block}")
        self.norm1 = nn.LayerNorm(dim, eps)
        self.attn = Attention(dim, block["heads"], block["head_dim"], qkv_bias)
        self.norm2 = nn.LayerNorm(dim, eps)
        self.mlp = Mlp(dim, block["hidden"])

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Vit(nn.Module):
    """The network a spec describes; parameters have timm's names."""

    def __init__(self, spec):
        super().__init__()
        if spec["family"] != "vit":
            raise ValueError(f"this example knows family vit only, not {spec['family']}")
        dim, eps, patch = spec["embed_dim"], spec["norm_eps"], spec["patch_size"]
        self.spec = spec
        self.prefix = 2 if spec["distilled"] else 1
        tokens = self.prefix + (spec["img_size"] // patch) ** 2
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, tokens, dim), spec["pos_embed"] == "learned")
        self.patch_embed = nn.Module()
        self.patch_embed.proj = nn.Conv2d(spec["in_chans"], dim, patch, patch)
        blocks = [Block(dim, block, spec["qkv_bias"], eps) for block in spec["blocks"]]
        self.blocks = nn.ModuleList(blocks)
        self.norm = nn.LayerNorm(dim, eps)
        self.head = nn.Linear(dim, spec["num_classes"])
        if spec["distilled"]:
            self.dist_token = nn.Parameter(torch.zeros(1, 1, dim))
            self.head_dist = nn.Linear(dim, spec["num_classes"])

    def forward(self, images):
        x = self.patch_embed.proj(images).flatten(2).transpose(1, 2)
        prefix = [self.cls_token, self.dist_token] if self.spec["distilled"] else [self.cls_token]
        x = torch.cat([token.expand(len(x), -1, -1) for token in prefix] + [x], 1) + self.pos_embed
        outputs = []
        for i, block in enumerate(self.blocks):
            for skip in self.spec["skips"]:
                if skip["to"] == i:
                    x = x + outputs[skip["from"]]
            x = block(x)
            outputs.append(x)
        x = self.norm(x)
        by_token = self.spec["pool"] == "token"
        mean = x[:, self.prefix :].mean(1)
        logits = self.head(x[:, 0] if by_token else mean)
        if not self.spec["distilled"]:
            return logits
        return (logits + self.head_dist(x[:, 1] if by_token else mean)) / 2


def load(path):
    tensors, metadata = read_safetensors(path)
    model = Vit(json.loads(metadata["adjoin.spec"]))
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
