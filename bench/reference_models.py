"""ViT/DeiT, T2T-ViT and Swin as ordinary PyTorch modules: what the C++ models are measured against.

Parameter names are those of the official checkpoints. Stochastic depth is left out (rate 0).
`golden_fill` and `golden_input` give weights and images that depend on names and indices only.

Run as `python3 bench/reference_models.py GOLDEN_DIR` to check the logits against the golden files.
"""

import json
import math
import sys
from collections import OrderedDict
from pathlib import Path

import numpy as np
import torch
from torch import nn


class Mlp(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.fc2(self.act(self.fc1(x)))


class Attention(nn.Module):
    def __init__(self, dim, heads, qkv_bias):
        super().__init__()
        self.heads = heads
        self.scale = (dim // heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask=None):
        b, n, c = x.shape
        qkv = self.qkv(x).view(b, n, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        attn = self.biased((q * self.scale) @ k.transpose(-2, -1), mask).softmax(-1)
        return self.proj((attn @ v).transpose(1, 2).reshape(b, n, c))

    def biased(self, scores, mask):
        return scores


class Block(nn.Module):
    def __init__(self, dim, heads, mlp_ratio, qkv_bias, eps):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps)
        self.attn = Attention(dim, heads, qkv_bias)
        self.norm2 = nn.LayerNorm(dim, eps)
        self.mlp = Mlp(dim, mlp_ratio * dim)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class PatchEmbed(nn.Module):
    """Non-overlapping patches to (B, H/p, W/p, dim)."""

    def __init__(self, patch, dim, norm=False):
        super().__init__()
        self.proj = nn.Conv2d(3, dim, patch, patch)
        self.norm = nn.LayerNorm(dim) if norm else nn.Identity()

    def forward(self, x):
        return self.norm(self.proj(x).permute(0, 2, 3, 1))


class Vit(nn.Module):
    def __init__(self, dim, depth, heads, ratio=4, image=224, patch=16, classes=1000, distilled=False):
        super().__init__()
        extra = 2 if distilled else 1
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.dist_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02) if distilled else None
        self.pos_embed = nn.Parameter(torch.randn(1, (image // patch) ** 2 + extra, dim) * 0.02)
        self.patch_embed = PatchEmbed(patch, dim)
        blocks = [Block(dim, heads, ratio, qkv_bias=True, eps=1e-6) for _ in range(depth)]
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(dim, 1e-6)
        self.head = nn.Linear(dim, classes)
        self.head_dist = nn.Linear(dim, classes) if distilled else None

    def forward(self, x):
        x = self.patch_embed(x).flatten(1, 2)
        tokens = [self.cls_token] if self.dist_token is None else [self.cls_token, self.dist_token]
        x = torch.cat([t.expand(x.shape[0], -1, -1) for t in tokens] + [x], 1) + self.pos_embed
        x = self.norm(self.blocks(x))
        if self.head_dist is None:
            return self.head(x[:, 0])
        out, dist = self.head(x[:, 0]), self.head_dist(x[:, 1])
        return (out, dist) if self.training else (out + dist) / 2


class TokenPerformer(nn.Module):
    """Linear attention with m positive random features; the value, not the input, is the skip."""

    def __init__(self, dim, emb=64, drop=0.1):
        super().__init__()
        m = emb // 2
        w = nn.init.orthogonal_(torch.empty(m, emb)) * math.sqrt(m)
        self.w = nn.Parameter(w, requires_grad=False)
        self.kqv = nn.Linear(dim, 3 * emb)
        self.proj = nn.Linear(emb, emb)
        self.drop = nn.Dropout(drop)
        self.norm1 = nn.LayerNorm(dim)
        self.norm2 = nn.LayerNorm(emb)
        mlp = [nn.Linear(emb, emb), nn.GELU(), nn.Linear(emb, emb), nn.Dropout(drop)]
        self.mlp = nn.Sequential(*mlp)

    def features(self, x):
        half_square = x.square().sum(-1, keepdim=True) / 2
        return torch.exp(x @ self.w.t() - half_square) / math.sqrt(self.w.shape[0])

    def forward(self, x):
        k, q, v = self.kqv(self.norm1(x)).chunk(3, -1)
        k, q = self.features(k), self.features(q)
        total = q @ k.sum(1).unsqueeze(-1)
        y = q @ (k.transpose(1, 2) @ v) / (total + 1e-8)
        y = v + self.drop(self.proj(y))
        return y + self.mlp(self.norm2(y))


class TokenAttention(nn.Module):
    """One head from dim to emb; scaled by the input width; the value is the skip."""

    def __init__(self, dim, emb):
        super().__init__()
        self.scale = dim**-0.5
        self.qkv = nn.Linear(dim, 3 * emb, bias=False)
        self.proj = nn.Linear(emb, emb)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, -1)
        attn = ((q * self.scale) @ k.transpose(-2, -1)).softmax(-1)
        return v + self.proj(attn @ v)


class TokenTransformer(nn.Module):
    def __init__(self, dim, emb=64):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim)
        self.attn = TokenAttention(dim, emb)
        self.norm2 = nn.LayerNorm(emb)
        self.mlp = Mlp(emb, emb)

    def forward(self, x):
        x = self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class TokensToToken(nn.Module):
    def __init__(self, layer, dim, emb=64):
        super().__init__()
        self.soft_split0 = nn.Unfold(7, stride=4, padding=2)
        self.soft_split1 = nn.Unfold(3, stride=2, padding=1)
        self.soft_split2 = nn.Unfold(3, stride=2, padding=1)
        self.attention1 = layer(3 * 49, emb)
        self.attention2 = layer(emb * 9, emb)
        self.project = nn.Linear(emb * 9, dim)

    def forward(self, x):
        x = self.soft_split0(x).transpose(1, 2)
        steps = (self.attention1, self.soft_split1), (self.attention2, self.soft_split2)
        for layer, split in steps:
            side = math.isqrt(x.shape[1])
            x = split(layer(x).transpose(1, 2).unflatten(2, (side, side))).transpose(1, 2)
        return self.project(x)


def sinusoid(tokens, dim):
    """(1, tokens, dim), computed in float64 and held in float32."""
    j = np.arange(dim)
    angle = np.arange(tokens)[:, None] / np.power(10000.0, 2 * (j // 2) / dim)
    return torch.from_numpy(np.where(j % 2 == 0, np.sin(angle), np.cos(angle))).float()[None]


class T2tVit(nn.Module):
    def __init__(self, dim, depth, heads, ratio, layer=TokenPerformer, image=224, classes=1000):
        super().__init__()
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        pos = sinusoid((image // 16) ** 2 + 1, dim)
        self.pos_embed = nn.Parameter(pos, requires_grad=False)
        self.tokens_to_token = TokensToToken(layer, dim)
        blocks = [Block(dim, heads, ratio, qkv_bias=False, eps=1e-5) for _ in range(depth)]
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.tokens_to_token(x)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], 1) + self.pos_embed
        return self.head(self.norm(self.blocks(x))[:, 0])


def partition(x, m):
    """(B, H, W, C) to (B * windows, m * m, C)."""
    b, h, w, c = x.shape
    return x.view(b, h // m, m, w // m, m, c).transpose(2, 3).reshape(-1, m * m, c)


def unpartition(x, m, h, w):
    c = x.shape[-1]
    return x.view(-1, h // m, w // m, m, m, c).transpose(2, 3).reshape(-1, h, w, c)


class WindowAttention(Attention):
    """Attention inside windows, with relative position bias and, where shifted, a mask."""

    def __init__(self, dim, window, heads):
        super().__init__(dim, heads, qkv_bias=True)
        table = torch.randn((2 * window - 1) ** 2, heads) * 0.02
        self.relative_position_bias_table = nn.Parameter(table)
        y, x = torch.arange(window**2) // window, torch.arange(window**2) % window
        dy, dx = y[:, None] - y[None, :], x[:, None] - x[None, :]
        index = (dy + window - 1) * (2 * window - 1) + dx + window - 1
        self.register_buffer("relative_position_index", index)

    def biased(self, scores, mask):
        index, n = self.relative_position_index, scores.shape[-1]
        bias = self.relative_position_bias_table[index.view(-1)].view(n, n, -1)
        bias = bias.permute(2, 0, 1).contiguous()
        if mask is None:
            return scores + bias
        bias = bias + mask.unsqueeze(1)
        return (scores.view(-1, *bias.shape) + bias).view_as(scores)


class SwinBlock(nn.Module):
    def __init__(self, dim, heads, side, window, shift):
        super().__init__()
        self.window, self.shift = (window, shift) if side > window else (side, 0)
        self.norm1 = nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, self.window, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, 4 * dim)
        mask = None
        if self.shift:
            edge = torch.zeros(side, dtype=torch.long)
            edge[side - self.window : side - self.shift] = 1
            edge[side - self.shift :] = 2
            region = 3 * edge[:, None] + edge[None, :]
            region = partition(region.view(1, side, side, 1), self.window).squeeze(-1)
            mask = torch.where(region[:, :, None] == region[:, None, :], 0.0, -100.0)
        self.register_buffer("attn_mask", mask)

    def forward(self, x):
        h, w, s = x.shape[1], x.shape[2], self.shift
        y = self.norm1(x)
        if s:
            y = torch.roll(y, (-s, -s), (1, 2))
        y = unpartition(self.attn(partition(y, self.window), self.attn_mask), self.window, h, w)
        if s:
            y = torch.roll(y, (s, s), (1, 2))
        x = x + y
        return x + self.mlp(self.norm2(x))


class PatchMerging(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.reduction = nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = nn.LayerNorm(4 * dim)

    def forward(self, x):
        b, h, w, c = x.shape
        x = x.view(b, h // 2, 2, w // 2, 2, c).permute(0, 1, 3, 4, 2, 5).flatten(3)
        return self.reduction(self.norm(x))


class Swin(nn.Module):
    def __init__(self, dim, depths, heads, window=7, image=224, patch=4, classes=1000):
        super().__init__()
        self.patch_embed = PatchEmbed(patch, dim, norm=True)
        side = image // patch
        stages = []
        for i, (depth, h) in enumerate(zip(depths, heads)):
            if i:
                stages[-1].add_module("downsample", PatchMerging(dim))
                dim, side = 2 * dim, side // 2
            shifts = [window // 2 if j % 2 else 0 for j in range(depth)]
            blocks = [SwinBlock(dim, h, side, window, shift) for shift in shifts]
            stages.append(nn.Sequential(OrderedDict(blocks=nn.Sequential(*blocks))))
        self.layers = nn.Sequential(*stages)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.norm(self.layers(self.patch_embed(x)))
        return self.head(x.mean((1, 2)))


MODELS = {
    "vit_mini_32": lambda: Vit(256, 8, 8, ratio=2, image=32, patch=4, classes=10),
    "deit_tiny_patch16_224": lambda: Vit(192, 12, 3),
    "deit_small_patch16_224": lambda: Vit(384, 12, 6),
    "deit_base_patch16_224": lambda: Vit(768, 12, 12),
    "t2t_vit_7": lambda: T2tVit(256, 7, 4, 2),
    "t2t_vit_14": lambda: T2tVit(384, 14, 6, 3),
    "t2t_vit_19": lambda: T2tVit(448, 19, 7, 3),
    "t2t_vit_24": lambda: T2tVit(512, 24, 8, 3),
    "t2t_vit_t_14": lambda: T2tVit(384, 14, 6, 3, TokenTransformer),
    "swin_tiny_patch4_window7_224": lambda: Swin(96, (2, 2, 6, 2), (3, 6, 12, 24)),
    "swin_small_patch4_window7_224": lambda: Swin(96, (2, 2, 18, 2), (3, 6, 12, 24)),
    "swin_base_patch4_window7_224": lambda: Swin(128, (2, 2, 18, 2), (4, 8, 16, 32)),
}


def build(name):
    if name not in MODELS:
        raise ValueError(f"unknown model {name!r}; known: {', '.join(MODELS)}")
    return MODELS[name]()


def golden_noise(name, shape):
    """float64 in [-1, 1): splitmix64 of (FNV-1a of the name) + flat index."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    z = np.arange(math.prod(shape), dtype=np.uint64) + np.uint64(h)
    z += np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return ((z >> np.uint64(11)) * 2.0**-52 - 1.0).reshape(shape)


def golden_fill(model, official=lambda name: name):
    """`official` gives the name that a parameter has in its authors' code."""
    small = ("pos_embed", "cls_token", "dist_token", "relative_position_bias_table")
    with torch.no_grad():
        for name, p in model.named_parameters():
            last = name.rpartition(".")[2]
            if last == "pos_embed" and not p.requires_grad:
                continue
            value = golden_noise(official(name), p.shape)
            if last == "weight" and p.dim() == 1:
                value = 1 + 0.1 * value
            elif last in small or p.dim() == 1:
                value *= 0.02
            elif last != "w":
                value /= math.sqrt(p.numel() // p.shape[0])
            p.copy_(torch.from_numpy(value))
    return model


def golden_input(shape, dtype=torch.float32):
    return torch.from_numpy(golden_noise("input", shape)).to(dtype)


def check(name, folder):
    golden = json.loads((Path(folder) / f"{name}.json").read_text())
    model = golden_fill(build(name).double()).eval()
    keys = [(k, list(v.shape)) for k, v in model.state_dict().items()]
    with torch.no_grad():
        logits = model(golden_input(golden["input"]["shape"], torch.float64))
    error = (logits - torch.tensor(golden["logits"], dtype=torch.float64)).abs().max().item()
    names_ok = sorted(keys) == sorted((k["name"], k["shape"]) for k in golden["keys"])
    ok = error <= 1e-9 and names_ok
    names = "names and shapes match" if names_ok else "NAMES OR SHAPES DIFFER"
    print(f"{name:30} largest logit error {error:.1e}, {names}: {'ok' if ok else 'FAILED'}")
    return ok


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} GOLDEN_DIR")
    names = ("deit_tiny_patch16_224", "swin_tiny_patch4_window7_224", "t2t_vit_14")
    sys.exit(0 if all([check(name, sys.argv[1]) for name in names]) else 1)
