#!/usr/bin/env python3
"""Golden values of the narrow geometry: width, heads and hidden units all divided by alpha.

  tools/make_narrow_goldens.py --golden tests/golden --out tests/golden

Plain functions of named tensors in float64, written from the specification and not from the C++.
The large networks, their tensors and the official names come from the golden files of the authors'
code; values are made from names and indices. What is sliced, for alpha = a:

  embed   residual channels, the first 1/a; LayerNorm then has its statistics over these
  qkv     rows of the first 1/a of the heads in each of q, k and v; the head dim stays
  heads   the first 1/a of the heads, or of their outputs
  hidden  the first 1/a of the MLP units
  merge   the 4C inputs of Swin's merging: the first 1/a in each of the four groups
  whole   class outputs, pixels, and all of T2T's token layers up to its `project`

T2T's sinusoid is sliced from the large network's. Nothing is written before these checks pass:
  1. alpha = 1 gives the logits, block and stage outputs and counts of the full golden files
  2. slicing heads and hidden units alone gives those of the *_inner_alpha*.json files
  3. the narrow network equals the full-width one whose other weights are zero and whose LayerNorm
     sees the kept channels only, and there all other channels are exactly zero
"""

import argparse
import json
import math
import sys
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

CASES = [  # model, alpha, whether there is a golden file of the inner slicing
    ("vit_small_cfg_img32_patch4_dim64_depth3_heads4", 2, False),
    ("swin_small_cfg_img32_patch2_window4_dim24_depths2_2_heads2_4", 2, False),
    ("deit_tiny_patch16_224", 3, True),
    ("t2t_vit_14", 2, True),
    ("swin_tiny_patch4_window7_224", 3, True),
]
TOLERANCE = 1e-12
SMALL = ("pos_embed", "cls_token", "relative_position_bias_table")
PARTS = "linear conv attention_qk attention_av "
PARTS += "performer_features performer_kv performer_q_kv performer_norm"

# ---- values ------------------------------------------------------------------------------------


def noise(name, shape):
    """float64 in [-1, 1): splitmix64 of (FNV-1a 64 of the name) + flat index."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    z = np.arange(math.prod(shape), dtype=np.uint64) + np.uint64(h)
    z += np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z ^= z >> np.uint64(31)
    return (2 * ((z >> np.uint64(11)).astype(np.float64) * 2.0**-53) - 1).reshape(shape)


def sinusoid(tokens, dim):
    """(1, tokens, dim), computed in float64, rounded to float32, held in float64."""
    j = np.arange(dim)
    angle = np.arange(tokens)[:, None] / np.power(10000.0, 2 * (j // 2) / dim)
    table = np.where(j % 2 == 0, np.sin(angle), np.cos(angle))
    return table.astype(np.float32).astype(np.float64)[None]


def fill(key):
    """The value of one tensor of a large network."""
    name, shape = key["name"], key["shape"]
    last = name.rpartition(".")[2]
    if key["kind"] == "fixed" and last == "pos_embed":
        return sinusoid(*shape[1:])
    r = noise(name, shape)
    if last in SMALL:
        return 0.02 * r
    if len(shape) == 1:
        return 1 + 0.1 * r if last == "weight" else 0.02 * r
    return r if last == "w" else r / math.sqrt(math.prod(shape[1:]))


# ---- slices ------------------------------------------------------------------------------------

AXES = [  # the first that a name ends with or, with a dot behind, begins with
    ("tokens_to_token.project.weight", ("embed", "whole")),
    ("tokens_to_token.project.bias", ("embed",)),
    ("tokens_to_token.", None),
    ("cls_token", ("whole", "whole", "embed")),
    ("pos_embed", ("whole", "whole", "embed")),
    ("patch_embed.proj.weight", ("embed", "whole", "whole", "whole")),
    ("patch_embed.proj.bias", ("embed",)),
    ("attn.relative_position_bias_table", ("whole", "heads")),
    ("attn.qkv.weight", ("qkv", "embed")),
    ("attn.qkv.bias", ("qkv",)),
    ("attn.proj.weight", ("embed", "heads")),
    ("attn.proj.bias", ("embed",)),
    ("mlp.fc1.weight", ("hidden", "embed")),
    ("mlp.fc1.bias", ("hidden",)),
    ("mlp.fc2.weight", ("embed", "hidden")),
    ("mlp.fc2.bias", ("embed",)),
    ("downsample.norm.weight", ("merge",)),
    ("downsample.norm.bias", ("merge",)),
    ("downsample.reduction.weight", ("embed", "merge")),
    ("norm.weight", ("embed",)),
    ("norm.bias", ("embed",)),
    ("norm1.weight", ("embed",)),
    ("norm1.bias", ("embed",)),
    ("norm2.weight", ("embed",)),
    ("norm2.bias", ("embed",)),
    ("head.weight", ("whole", "embed")),
    ("head.bias", ("whole",)),
]


def axes_of(name, rank):
    for pattern, axes in AXES:
        if name.startswith(pattern) if pattern.endswith(".") else name.endswith(pattern):
            return axes or ("whole",) * rank
    raise ValueError(f"no rule for tensor {name}")


def kept_indices(kind, size, alpha, narrow, head_dim):
    """Which entries of an axis the small network has."""
    index = np.arange(size)
    if kind == "whole" or (kind in ("embed", "merge") and not narrow):
        return index
    if size % alpha:
        raise ValueError(f"alpha {alpha} does not divide {size} ({kind})")
    if kind == "qkv":
        heads = size // (3 * head_dim)
        return index.reshape(3, heads, head_dim)[:, : heads // alpha].reshape(-1)
    if kind == "merge":
        return index.reshape(4, -1)[:, : size // 4 // alpha].reshape(-1)
    return index[: size // alpha]


def cut(name, value, alpha, narrow, head_dim):
    for axis, kind in enumerate(axes_of(name, value.ndim)):
        kept = kept_indices(kind, value.shape[axis], alpha, narrow, head_dim)
        value = np.take(value, kept, axis)
    return value


def kept_mask(kind, size, alpha):
    """The narrow slice of an axis said another way: the first 1/alpha of every period."""
    period = size // {"qkv": 3, "merge": 4}.get(kind, 1)
    return np.arange(size) % period < (period if kind == "whole" else period // alpha)


def blank(name, value, alpha):
    """`value` with everything that the narrow slice leaves out set to zero."""
    for axis, kind in enumerate(axes_of(name, value.ndim)):
        shape = [-1 if i == axis else 1 for i in range(value.ndim)]
        value = value * kept_mask(kind, value.shape[axis], alpha).reshape(shape)
    return value


# ---- networks ----------------------------------------------------------------------------------


class Net:
    """The forward pass as functions of named tensors; counts MACs and records outputs on its way.

    `alpha` above 1 is for blanked weights of full width: LayerNorm then keeps to the kept channels.
    """

    def __init__(self, config, weights, dtype=torch.float64, alpha=1):
        self.config, self.alpha = config, alpha
        self.w = {name: torch.from_numpy(value).to(dtype) for name, value in weights.items()}
        heads = config["num_heads"]
        self.head_dim = config["embed_dim"] // (heads[0] if isinstance(heads, list) else heads)
        self.macs = dict.fromkeys(PARTS.split(), 0)
        self.blocks, self.stages = [], []

    def linear(self, x, name):
        weight = self.w[name + ".weight"]
        self.macs["linear"] += x.numel() // x.shape[-1] * weight.numel()
        return F.linear(x, weight, self.w.get(name + ".bias"))

    def conv(self, x, name):
        """Patches that do not overlap, to (B, H, W, channels)."""
        weight, bias = self.w[name + ".weight"], self.w[name + ".bias"]
        y = F.conv2d(x, weight, bias, stride=weight.shape[-1]).permute(0, 2, 3, 1)
        self.macs["conv"] += y.numel() * weight[0].numel()
        return y

    def norm(self, x, name, masked="embed"):
        weight, bias = self.w[name + ".weight"], self.w[name + ".bias"]
        eps = self.config["layernorm_eps"]
        if self.alpha == 1 or not masked:
            return F.layer_norm(x, weight.shape, weight, bias, eps)
        mask = torch.from_numpy(kept_mask(masked, x.shape[-1], self.alpha)).to(x.dtype)
        if (x * (1 - mask)).any():
            raise ValueError(f"{name}: a channel outside the slice is not zero")
        mean = x.sum(-1, keepdim=True) / mask.sum()
        centred = (x - mean) * mask
        variance = centred.square().sum(-1, keepdim=True) / mask.sum()
        return centred / torch.sqrt(variance + eps) * weight + bias

    def attention(self, x, name, bias=None):
        """Softmax attention over the tokens of x (B, N, C); `bias` is added to the scores."""
        qkv = self.linear(x, name + ".qkv").unflatten(-1, (3, -1, self.head_dim))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        for part in ("attention_qk", "attention_av"):
            self.macs[part] += q.numel() * k.shape[2]
        scores = q @ k.transpose(-2, -1) * self.head_dim**-0.5
        if bias is not None:
            scores = (scores.unflatten(0, (-1, bias.shape[0])) + bias).flatten(0, 1)
        y = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.linear(y, name + ".proj")

    def mlp(self, x, name):
        return self.linear(F.gelu(self.linear(x, name + ".fc1")), name + ".fc2")

    def block(self, x, name):
        x = x + self.attention(self.norm(x, name + ".norm1"), name + ".attn")
        x = x + self.mlp(self.norm(x, name + ".norm2"), name + ".mlp")
        return self.record(self.blocks, name, x)

    def record(self, where, name, x):
        token = x[:, 0]
        where.append(
            {
                "name": name,
                "shape": list(x.shape),
                "token0_first8": token[:, :8].tolist(),
                "token0_l2": token.norm(dim=1).tolist(),
                "l2": x.flatten(1).norm(dim=1).tolist(),
            }
        )
        return x

    def with_class_token(self, x):
        x = torch.cat([self.w["cls_token"].expand(x.shape[0], -1, -1), x], 1) + self.w["pos_embed"]
        for i in range(self.config["depth"]):
            x = self.block(x, f"blocks.{i}")
        x = self.record(self.stages, "norm", self.norm(x, "norm"))
        return self.linear(x[:, 0], "head")

    def vit(self, x):
        x = self.conv(x, "patch_embed.proj").flatten(1, 2)
        return self.with_class_token(self.record(self.stages, "patch_embed", x))

    def performer(self, x, name):
        """T2T's token layer: linear attention by positive random features; v is the shortcut."""
        w = self.w[name + ".w"]
        m, emb = w.shape
        k, q, v = self.linear(self.norm(x, name + ".norm1", None), name + ".kqv").chunk(3, -1)
        k, q = (
            torch.exp(t @ w.t() - t.square().sum(-1, keepdim=True) / 2) / math.sqrt(m)
            for t in (k, q)
        )
        tokens = x.shape[0] * x.shape[1]
        self.macs["performer_features"] += 2 * tokens * emb * m
        self.macs["performer_kv"] += tokens * emb * m
        self.macs["performer_q_kv"] += tokens * m * emb
        self.macs["performer_norm"] += tokens * m
        total = (q * k.sum(1, keepdim=True)).sum(-1, keepdim=True)
        y = q @ (k.transpose(1, 2) @ v) / (total + 1e-8)
        y = v + self.linear(y, name + ".proj")
        hidden = F.gelu(self.linear(self.norm(y, name + ".norm2", None), name + ".mlp.0"))
        return self.record(self.stages, name, y + self.linear(hidden, name + ".mlp.2"))

    def t2t(self, x):
        x = F.unfold(x, 7, stride=4, padding=2).transpose(1, 2)
        for i in (1, 2):
            x = self.performer(x, f"tokens_to_token.attention{i}").transpose(1, 2)
            side = math.isqrt(x.shape[2])
            x = F.unfold(x.unflatten(2, (side, side)), 3, stride=2, padding=1).transpose(1, 2)
        x = self.linear(x, "tokens_to_token.project")
        return self.with_class_token(self.record(self.stages, "tokens_to_token", x))

    def window_bias(self, name, side, window, shift):
        """(windows, heads, window^2, window^2): relative positions, and -100 between regions."""
        y, x = torch.arange(window**2) // window, torch.arange(window**2) % window
        dy, dx = y[:, None] - y[None, :], x[:, None] - x[None, :]
        index = (dy + window - 1) * (2 * window - 1) + dx + window - 1
        bias = self.w[name + ".relative_position_bias_table"][index].permute(2, 0, 1)[None]
        if not shift:
            return bias
        strip = (torch.arange(side) >= side - window).long() + (torch.arange(side) >= side - shift)
        region = 3 * strip[:, None] + strip[None, :]
        region = to_windows(region[None, :, :, None], window)[:, :, 0]
        return bias - 100.0 * (region[:, None, :, None] != region[:, None, None, :])

    def swin_block(self, x, name, shift):
        """x is (B, H, W, C)."""
        side, window = x.shape[1], self.config["window_size"]
        if side <= window:
            window, shift = side, 0
        y = self.norm(x, name + ".norm1").roll((-shift, -shift), (1, 2))
        bias = self.window_bias(name + ".attn", side, window, shift)
        y = self.attention(to_windows(y, window), name + ".attn", bias)
        x = x + from_windows(y, window, side).roll((shift, shift), (1, 2))
        x = x + self.mlp(self.norm(x, name + ".norm2"), name + ".mlp")
        self.record(self.blocks, name, x.flatten(1, 2))
        return x

    def merge(self, x, name):
        groups = [x[:, i::2, j::2] for i, j in ((0, 0), (1, 0), (0, 1), (1, 1))]
        x = self.norm(torch.cat(groups, -1), name + ".norm", "merge")
        x = self.linear(x, name + ".reduction")
        self.record(self.stages, name, x.flatten(1, 2))
        return x

    def swin(self, x):
        x = self.norm(self.conv(x, "patch_embed.proj"), "patch_embed.norm")
        self.record(self.stages, "patch_embed", x.flatten(1, 2))
        for s, depth in enumerate(self.config["depths"]):
            for b in range(depth):
                shift = self.config["window_size"] // 2 if b % 2 else 0
                x = self.swin_block(x, f"layers.{s}.blocks.{b}", shift)
            if s + 1 < len(self.config["depths"]):
                x = self.merge(x, f"layers.{s}.downsample")
        x = self.record(self.stages, "norm", self.norm(x.flatten(1, 2), "norm"))
        return self.linear(x.mean(1), "head")


def to_windows(x, m):
    """(B, H, W, C) to (B * windows, m * m, C)."""
    x = x.unflatten(2, (-1, m)).unflatten(1, (-1, m))
    return x.transpose(2, 3).flatten(3, 4).flatten(0, 2)


def from_windows(x, m, side):
    x = x.unflatten(1, (m, m)).unflatten(0, (-1, side // m, side // m))
    return x.transpose(2, 3).flatten(3, 4).flatten(1, 2)


def run(golden, weights, dtype=torch.float64, alpha=1):
    """Logits and the Net that made them; its MACs are those of one image."""
    net = Net(golden["config"], weights, dtype, alpha)
    family = {"deit": net.vit, "vit": net.vit, "t2t": net.t2t, "swin": net.swin}[golden["family"]]
    shape = golden["input"]["shape"]
    with torch.no_grad():
        logits = family(torch.from_numpy(noise("input", shape)).to(dtype))
    net.macs = {part: count // shape[0] for part, count in net.macs.items()}
    return logits.double(), net


# ---- checks and files --------------------------------------------------------------------------


def largest_difference(a, b):
    a, b = (torch.as_tensor(v, dtype=torch.float64) for v in (a, b))
    return (a - b).abs().max().item()


def compare(what, golden, logits, net):
    """Against the golden file: logits absolutely, recorded outputs relatively, counts exactly."""
    error = largest_difference(logits, golden["logits"])
    inner = 0.0
    for field, ours in (("blocks", net.blocks), ("stages", net.stages)):
        if [o["name"] for o in ours] != [g["name"] for g in golden[field]]:
            sys.exit(f"{what}: {field} differ in name or order")
        for o, g in zip(ours, golden[field]):
            for key in ("token0_first8", "token0_l2", "l2"):
                size = torch.as_tensor(g[key], dtype=torch.float64).abs().max().item()
                inner = max(inner, largest_difference(o[key], g[key]) / max(size, 1))
    params = sum(w.numel() for w in net.w.values())
    same = net.macs == golden["macs"]["parts"] and params == golden["params_total"]
    counts = "counts same" if same else "COUNTS DIFFER"
    print(f"  {what:28} logits {error:.1e}, blocks and stages {inner:.1e}, {counts}", flush=True)
    if not (error <= TOLERANCE and inner <= TOLERANCE and same):
        sys.exit(f"{golden['model']}: {what} differ")


def compression(golden, weights, small, head_dim, alpha):
    blocks = []
    for name in (n for n in weights if n.endswith(".attn.qkv.weight")):
        block = name[: -len(".attn.qkv.weight")]
        fc1 = block + ".mlp.fc1.weight"
        blocks.append(
            {
                "block": block,
                "alpha": alpha,
                "heads": small[name].shape[0] // (3 * head_dim),
                "of_heads": weights[name].shape[0] // (3 * head_dim),
                "head_dim": head_dim,
                "hidden": small[fc1].shape[0],
                "of_hidden": weights[fc1].shape[0],
            }
        )
    width = golden["config"]["embed_dim"] // alpha
    return {"kind": "narrow", "alphas": [alpha], "embed_dim": width, "blocks": blocks}


def make(folder, model, alpha, has_inner):
    """Check, then return the golden file of the narrow network as a dict."""
    print(f"{model}, alpha {alpha}")
    golden = json.loads((folder / f"{model}.json").read_text())
    keys = [k for k in golden["keys"] if k["kind"] != "buffer"]
    weights = {k["name"]: fill(k) for k in keys}
    full, net = run(golden, weights)
    head_dim = net.head_dim
    compare("alpha 1 and full golden", golden, full, net)

    if has_inner:
        inner = json.loads((folder / f"{model}_inner_alpha{alpha}.json").read_text())
        kept = {n: cut(n, v, alpha, False, head_dim) for n, v in weights.items()}
        compare("kept and inner golden", inner, *run(golden, kept))

    small = {n: cut(n, v, alpha, True, head_dim) for n, v in weights.items()}
    logits, net = run(golden, small)
    blanked = {n: blank(n, v, alpha) for n, v in weights.items()}
    masked, _ = run(golden, blanked, alpha=alpha)
    error = largest_difference(logits, masked)
    print(f"  {'narrow and masked full width':28} logits {error:.1e}", flush=True)
    if not error <= TOLERANCE:
        sys.exit(f"{model}: the narrow network and the masked one differ")

    sizes = {k["name"]: small[k["name"]].size for k in keys}
    fixed = sum(sizes[k["name"]] for k in keys if k["kind"] == "fixed")
    table = []
    for key in golden["keys"]:
        if key["kind"] != "buffer":
            v = small[key["name"]]
            key |= {"shape": list(v.shape), "first": v.flat[0].item(), "sum": v.sum().item()}
        table.append(key)
    return {
        **{k: golden[k] for k in ("model", "family", "config")},
        "source": {"script": "tools/make_narrow_goldens.py"},
        **{k: golden[k] for k in ("dtype", "torch", "input")},
        "compression": compression(golden, weights, small, head_dim, alpha),
        "params_trainable": sum(sizes.values()) - fixed,
        "params_total": sum(sizes.values()),
        "macs": {
            "with_attention": sum(net.macs.values()),
            "without_attention": net.macs["linear"] + net.macs["conv"],
            "parts": net.macs,
        },
        "logits": logits.tolist(),
        "logits_max_abs": logits.abs().max().item(),
        "logits_image_difference_max_abs": largest_difference(logits[0], logits[1]),
        "logits_float32_max_abs_error": largest_difference(
            logits, run(golden, small, torch.float32)[0]
        ),
        "blocks": net.blocks,
        "stages": net.stages,
        "logits_difference_from_full_max_abs": largest_difference(logits, full),
        "keys": table,
    }


def text(value):
    """JSON on one line, numbers with 17 significant digits."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)}: {text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(text(v) for v in value) + "]"
    if isinstance(value, float):
        digits = f"{value:.17g}"
        return digits if any(c in digits for c in ".en") else digits + ".0"
    return json.dumps(value)


def document(value):
    """As `text`, with a line for each field, for each entry of a list or dict in it."""
    lines = []
    for key, field in value.items():
        body = text(field)
        if isinstance(field, dict):
            body = ",\n".join(f"  {json.dumps(k)}: {text(v)}" for k, v in field.items())
            body = "{\n" + body + "\n }"
        elif isinstance(field, list):
            body = "[\n" + ",\n".join("  " + text(v) for v in field) + "\n ]"
        lines.append(f" {json.dumps(key)}: {body}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def main():
    default = Path(__file__).resolve().parent.parent / "tests/golden"
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--golden", type=Path, default=default, help="folder of the full goldens")
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    args = parser.parse_args()
    torch.set_num_threads(1)
    files = {f"{m}_narrow_alpha{a}.json": make(args.golden, m, a, i) for m, a, i in CASES}
    args.out.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (args.out / name).write_text(document(value))
        print(f"wrote {args.out / name}")


if __name__ == "__main__":
    main()
