"""ViT/DeiT, T2T-ViT and Swin as ordinary PyTorch modules: what the C++ models are measured against.

Parameter names are those of the official checkpoints. Stochastic depth is left out (rate 0).
With `alpha` every block has heads / alpha heads of unchanged width and hidden / alpha hidden units.
`golden_fill` and `golden_input` give weights and images that depend on names and indices only.

Run as `python3 bench/reference_models.py GOLDEN_DIR` to check the logits against the golden files.
"""

import json
import math
import sys
from collections import OrderedDict
from functools import partial
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


def shrunk(units, alpha):
    """units / alpha, which must be whole."""
    if units % alpha:
        raise ValueError(f"alpha {alpha} does not divide {units}")
    return units // alpha


class Attention(nn.Module):
    """On a GPU it is PyTorch's own attention where there is one."""

    def __init__(self, dim, heads, qkv_bias, alpha=1):
        super().__init__()
        self.heads = shrunk(heads, alpha)
        head_dim = dim // heads
        inner = self.heads * head_dim
        self.scale = head_dim**-0.5
        self.qkv = nn.Linear(dim, 3 * inner, bias=qkv_bias)
        self.proj = nn.Linear(inner, dim)

    def forward(self, x, mask=None):
        b, n, _ = x.shape
        qkv = self.qkv(x).view(b, n, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = qkv.unbind(0)
        if x.is_cuda and hasattr(nn.functional, "scaled_dot_product_attention"):
            bias = self.additive(b, mask)
            out = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=bias)
        else:
            out = self.biased((q * self.scale) @ k.transpose(-2, -1), mask).softmax(-1) @ v
        return self.proj(out.transpose(1, 2).flatten(2))

    def additive(self, batch, mask):
        return None

    def biased(self, scores, mask):
        return scores


class Block(nn.Module):
    def __init__(self, dim, heads, mlp_ratio, qkv_bias, eps, alpha=1):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps)
        self.attn = Attention(dim, heads, qkv_bias, alpha)
        self.norm2 = nn.LayerNorm(dim, eps)
        self.mlp = Mlp(dim, shrunk(mlp_ratio * dim, alpha))

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
    def __init__(
        self,
        dim,
        depth,
        heads,
        ratio=4,
        image=224,
        patch=16,
        classes=1000,
        distilled=False,
        alpha=1,
    ):
        super().__init__()
        extra = 2 if distilled else 1
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        self.dist_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02) if distilled else None
        self.pos_embed = nn.Parameter(torch.randn(1, (image // patch) ** 2 + extra, dim) * 0.02)
        self.patch_embed = PatchEmbed(patch, dim)
        block = partial(Block, dim, heads, ratio, qkv_bias=True, eps=1e-6, alpha=alpha)
        self.blocks = nn.Sequential(*[block() for _ in range(depth)])
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
    """The token stage is whole whatever alpha is."""

    def __init__(
        self, dim, depth, heads, ratio, layer=TokenPerformer, image=224, classes=1000, alpha=1
    ):
        super().__init__()
        self.cls_token = nn.Parameter(torch.randn(1, 1, dim) * 0.02)
        pos = sinusoid((image // 16) ** 2 + 1, dim)
        self.pos_embed = nn.Parameter(pos, requires_grad=False)
        self.tokens_to_token = TokensToToken(layer, dim)
        block = partial(Block, dim, heads, ratio, qkv_bias=False, eps=1e-5, alpha=alpha)
        self.blocks = nn.Sequential(*[block() for _ in range(depth)])
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

    def __init__(self, dim, window, heads, alpha=1):
        super().__init__(dim, heads, qkv_bias=True, alpha=alpha)
        table = torch.randn((2 * window - 1) ** 2, self.heads) * 0.02
        self.relative_position_bias_table = nn.Parameter(table)
        y, x = torch.arange(window**2) // window, torch.arange(window**2) % window
        dy, dx = y[:, None] - y[None, :], x[:, None] - x[None, :]
        index = (dy + window - 1) * (2 * window - 1) + dx + window - 1
        self.register_buffer("relative_position_index", index)

    def position_bias(self):
        """(heads, tokens, tokens)."""
        index = self.relative_position_index
        bias = self.relative_position_bias_table[index.view(-1)].view(*index.shape, -1)
        return bias.permute(2, 0, 1).contiguous()

    def additive(self, batch, mask):
        bias = self.position_bias().unsqueeze(0)
        if mask is None:
            return bias
        return bias + mask.repeat(batch // mask.shape[0], 1, 1).unsqueeze(1)

    def biased(self, scores, mask):
        bias = self.position_bias()
        if mask is None:
            return scores + bias
        bias = bias + mask.unsqueeze(1)
        return (scores.view(-1, *bias.shape) + bias).view_as(scores)


class SwinBlock(nn.Module):
    def __init__(self, dim, heads, side, window, shift, alpha=1):
        super().__init__()
        self.window, self.shift = (window, shift) if side > window else (side, 0)
        self.norm1 = nn.LayerNorm(dim)
        self.attn = WindowAttention(dim, self.window, heads, alpha)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, shrunk(4 * dim, alpha))
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
    def __init__(self, dim, depths, heads, window=7, image=224, patch=4, classes=1000, alpha=1):
        super().__init__()
        self.patch_embed = PatchEmbed(patch, dim, norm=True)
        side = image // patch
        stages = []
        for i, (depth, h) in enumerate(zip(depths, heads)):
            if i:
                stages[-1].add_module("downsample", PatchMerging(dim))
                dim, side = 2 * dim, side // 2
            shifts = [window // 2 if j % 2 else 0 for j in range(depth)]
            blocks = [SwinBlock(dim, h, side, window, shift, alpha) for shift in shifts]
            stages.append(nn.Sequential(OrderedDict(blocks=nn.Sequential(*blocks))))
        self.layers = nn.Sequential(*stages)
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        x = self.norm(self.layers(self.patch_embed(x)))
        return self.head(x.mean((1, 2)))


MODELS = {
    "vit_mini_32": partial(Vit, 256, 8, 8, ratio=2, image=32, patch=4, classes=10),
    "vit_12x192_32": partial(Vit, 192, 12, 12, image=32, patch=4, classes=10),
    "deit_tiny_patch16_224": partial(Vit, 192, 12, 3),
    "deit_small_patch16_224": partial(Vit, 384, 12, 6),
    "deit_base_patch16_224": partial(Vit, 768, 12, 12),
    "t2t_vit_7": partial(T2tVit, 256, 7, 4, 2),
    "t2t_vit_14": partial(T2tVit, 384, 14, 6, 3),
    "t2t_vit_19": partial(T2tVit, 448, 19, 7, 3),
    "t2t_vit_24": partial(T2tVit, 512, 24, 8, 3),
    "t2t_vit_t_14": partial(T2tVit, 384, 14, 6, 3, TokenTransformer),
    "swin_tiny_patch4_window7_224": partial(Swin, 96, (2, 2, 6, 2), (3, 6, 12, 24)),
    "swin_small_patch4_window7_224": partial(Swin, 96, (2, 2, 18, 2), (3, 6, 12, 24)),
    "swin_base_patch4_window7_224": partial(Swin, 128, (2, 2, 18, 2), (4, 8, 16, 32)),
}


def build(name, alpha=1):
    if name not in MODELS:
        raise ValueError(f"unknown model {name!r}; known: {', '.join(MODELS)}")
    return MODELS[name](alpha=alpha)


def inherit(small, large):
    """Give `small` the leading heads and hidden units of `large`."""
    whole = dict(large.named_parameters())
    with torch.no_grad():
        for name, p in small.named_parameters():
            value = whole[name]
            if name.rpartition(".")[0].endswith(".qkv"):
                value = value.view(3, -1, *value.shape[1:])[:, : p.shape[0] // 3].flatten(0, 1)
            p.copy_(value[tuple(slice(size) for size in p.shape)])
    return small


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


def check(name, alpha, folder):
    label = name if alpha == 1 else f"{name}_inner_alpha{alpha}"
    golden = json.loads((Path(folder) / f"{label}.json").read_text())
    model = golden_fill(build(name).double()).eval()
    if alpha != 1:
        model = inherit(build(name, alpha).double(), model).eval()
    keys = [(k, list(v.shape)) for k, v in model.state_dict().items()]
    with torch.no_grad():
        logits = model(golden_input(golden["input"]["shape"], torch.float64))
    error = (logits - torch.tensor(golden["logits"], dtype=torch.float64)).abs().max().item()
    names_ok = sorted(keys) == sorted((k["name"], k["shape"]) for k in golden["keys"])
    ok = error <= 1e-9 and names_ok
    names = "names and shapes match" if names_ok else "NAMES OR SHAPES DIFFER"
    print(f"{label:42} largest logit error {error:.1e}, {names}: {'ok' if ok else 'FAILED'}")
    return ok


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} GOLDEN_DIR")
    cases = [("deit_tiny_patch16_224", 3), ("swin_tiny_patch4_window7_224", 3), ("t2t_vit_14", 2)]
    cases = [(name, alpha) for name, small in cases for alpha in (1, small)]
    sys.exit(0 if all([check(name, alpha, sys.argv[1]) for name, alpha in cases]) else 1)
