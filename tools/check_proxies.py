#!/usr/bin/env python3
"""Compute grad_norm, snip, synflow and dss again, with Python torch and nothing of ours, and compare.

`adjoin rank --write-inputs` gives the start values and the batch of each architecture. The networks are built here from
the description in the files: vision transformers with or without the relative positions of AutoFormer.

  tools/check_proxies.py --adjoin build/release/bin/adjoin                     # five networks of autoformer-tiny
  tools/check_proxies.py --adjoin build/release/bin/adjoin -- --archs FILE     # or what the options of rank say
"""

import argparse
import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F

PROXIES = ["grad_norm", "snip", "synflow", "dss"]
DTYPES = {"F32": torch.float32, "I64": torch.int64}


def read_safetensors(path):
    """Tensors by name, and the metadata."""
    data = Path(path).read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, info in header.items():
        begin, end = (8 + length + offset for offset in info["data_offsets"])
        flat = torch.frombuffer(bytearray(data[begin:end]), dtype=DTYPES[info["dtype"]])
        tensors[name] = flat.view(info["shape"])
    return tensors, metadata


def relative_index(side, distance, classes):
    """Rows of the two tables for every pair of tokens, (N, N) each."""
    place = torch.arange(side * side)
    rows, columns = place // side, place % side
    found = []
    for axis in (rows, columns):
        apart = (axis[None, :] - axis[:, None]).clamp(-distance, distance) + distance + 1
        found.append(F.pad(apart, (classes, 0, classes, 0)))
    return found


class Network:
    """A ViT as a function of its tensors and a spec."""

    def __init__(self, spec):
        self.spec = spec
        self.index = {}

    def positions(self, w, prefix, tokens, distance):
        """What is added to the key, or value, of every pair of tokens, (N, N, d)."""
        side = int((tokens - 1) ** 0.5)
        if (side, distance) not in self.index:
            self.index[side, distance] = relative_index(side, distance, tokens - side * side)
        rows, columns = self.index[side, distance]
        return w[prefix + "embeddings_table_v"][rows] + w[prefix + "embeddings_table_h"][columns]

    def attention(self, w, prefix, block, x):
        batch, tokens, _ = x.shape
        heads, dim = block["heads"], block["head_dim"]
        qkv = F.linear(x, w[prefix + "qkv.weight"], w.get(prefix + "qkv.bias"))
        q, k, v = qkv.reshape(batch, tokens, 3, heads, dim).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1)
        is_relative = block["mixer"]["kind"] == "relative"
        if is_relative:
            keys = self.positions(w, prefix + "rel_pos_embed_k.", tokens, block["mixer"]["distance"])
            by_query = q.permute(2, 0, 1, 3).reshape(tokens, batch * heads, dim)
            asked = by_query @ keys.transpose(1, 2)
            scores = scores + asked.transpose(0, 1).reshape(batch, heads, tokens, tokens)
        seen = (scores * dim**-0.5).softmax(-1)
        out = seen @ v
        if is_relative:
            values = self.positions(w, prefix + "rel_pos_embed_v.", tokens, block["mixer"]["distance"])
            by_query = seen.permute(2, 0, 1, 3).reshape(tokens, batch * heads, tokens)
            got = by_query @ values
            out = out + got.transpose(0, 1).reshape(batch, heads, tokens, dim)
        out = out.transpose(1, 2).reshape(batch, tokens, heads * dim)
        return F.linear(out, w[prefix + "proj.weight"], w[prefix + "proj.bias"])

    def logits(self, w, images):
        spec = self.spec
        x = F.conv2d(images, w["patch_embed.proj.weight"], w["patch_embed.proj.bias"], spec["patch_size"])
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat([w["cls_token"].expand(len(x), -1, -1), x], 1) + w["pos_embed"]

        def norm(name, x):
            return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], spec["norm_eps"])

        for i, block in enumerate(spec["blocks"]):
            name = f"blocks.{i}"
            x = x + self.attention(w, name + ".attn.", block, norm(name + ".norm1", x))
            hidden = F.linear(norm(name + ".norm2", x), w[name + ".mlp.fc1.weight"], w[name + ".mlp.fc1.bias"])
            x = x + F.linear(F.gelu(hidden), w[name + ".mlp.fc2.weight"], w[name + ".mlp.fc2.bias"])
        x = norm("norm", x)
        x = x[:, 1:].mean(1) if spec["pool"] == "avg" else x[:, 0]
        return F.linear(x, w["head.weight"], w["head.bias"])


def with_gradients(number, leaves):
    """(name, value, gradient) of each leaf."""
    gradients = torch.autograd.grad(number, list(leaves.values()), allow_unused=True)
    return [
        (name, leaf.detach(), torch.zeros_like(leaf) if gradient is None else gradient)
        for (name, leaf), gradient in zip(leaves.items(), gradients)
    ]


def loss_scores(network, weights, images, labels):
    """grad_norm and snip, which share one pass."""
    leaves = {name: value.detach().requires_grad_() for name, value in weights.items()}
    pulls = with_gradients(F.cross_entropy(network.logits(leaves, images), labels), leaves)
    squares = sum(gradient.square().sum().item() for _, _, gradient in pulls)
    return {
        "grad_norm": squares**0.5,
        "snip": sum((value * gradient).abs().sum().item() for _, value, gradient in pulls),
    }


def flow_scores(network, weights, images):
    """synflow and dss, in double precision on an image of ones with positive weights."""
    leaves = {name: value.double().abs().requires_grad_() for name, value in weights.items()}
    ones = torch.ones(1, *images.shape[1:], dtype=torch.float64)
    pulls = with_gradients(network.logits(leaves, ones).sum(), leaves)
    dss = 0
    for name, value, gradient in pulls:
        if value.dim() != 2 or not name.endswith(".weight"):
            continue
        if ".attn." in name:
            dss += (torch.linalg.svdvals(gradient).sum() * torch.linalg.svdvals(value).sum()).item()
        else:
            dss += (value * gradient).abs().sum().item()
    return {"synflow": sum((value * gradient).abs().sum().item() for _, value, gradient in pulls), "dss": dss}


def main():
    parser = argparse.ArgumentParser(description="Proxies by Python torch beside those of adjoin rank.")
    parser.add_argument("--adjoin", required=True, help="the program")
    parser.add_argument("--tolerance", type=float, default=1e-4, help="largest relative difference")
    parser.add_argument("options", nargs="*", help="of adjoin rank: which architectures")
    args = parser.parse_args()
    options = args.options or ["--space", "autoformer-tiny", "--sample", "5", "--batch-size", "8"]
    worst = 0
    with tempfile.TemporaryDirectory() as folder:
        command = [args.adjoin, "rank", *options, "--proxies", ",".join(PROXIES)]
        command += ["--write-inputs", folder, "--json"]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"adjoin rank: {done.stderr.strip()}")
        print(f"{'architecture':40.40}  " + "  ".join(f"{name:>12}  {'apart':>8}" for name in PROXIES))
        for i, scored in enumerate(json.loads(done.stdout)["scores"]):
            weights, metadata = read_safetensors(f"{folder}/{i}.safetensors")
            batch, _ = read_safetensors(f"{folder}/{i}.batch.safetensors")
            network = Network(json.loads(metadata["adjoin.spec"]))
            ours = loss_scores(network, weights, batch["images"], batch["labels"])
            ours.update(flow_scores(network, weights, batch["images"]))
            apart = {name: abs(scored[name] / ours[name] - 1) for name in PROXIES}
            worst = max(worst, *apart.values())
            cells = "  ".join(f"{ours[name]:12.6g}  {apart[name]:8.1e}" for name in PROXIES)
            print(f"{scored['name']:40.40}  {cells}", flush=True)
    print(f"largest relative difference {worst:.1e}")
    if not worst <= args.tolerance:
        sys.exit(f"above {args.tolerance:g}")


if __name__ == "__main__":
    main()
