#!/usr/bin/env python3
"""Compute what `adjoin inspect` says of every layer again, with numpy and nothing of ours, and compare.

The network is deit_tiny_patch16_224 with the weights and images of the golden files, in float64. The pass here must
give the logits, and the lengths of the layers, of tests/golden/deit_tiny_patch16_224.json before anything is compared.

  tools/inspect_reference.py --adjoin build/release/bin/adjoin                 # files in a temporary folder
  tools/inspect_reference.py --adjoin build/release/bin/adjoin --folder DIR    # files stay in DIR

Tokens X (N, C) of one image, R = X - the mean token in every row, |.|_F the Frobenius norm and |.|_c the square root
of (largest column sum of absolute values) * (largest row sum); all are means over the images:

  residual_frobenius, residual_composite     |R|_F / |X|_F, |R|_c / |X|_c
  .._of_input                                |R|_F / |R_0|_F, |R|_c / |R_0|_c, R_0 of what enters the first block
  token_cosine                               mean over the pairs of different tokens
  effective_rank                             exp of the entropy of the singular values, which are scaled to sum 1
  activation_norm                            mean length of a token
  attention_entropy                          of a row of the attention matrix, in nats, mean over rows; per head

Differences are absolute for numbers below 1 and relative above.
"""

import argparse
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

MODEL = "deit_tiny_patch16_224"
GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "golden" / f"{MODEL}.json"
LABELS = [3, 7]
TOLERANCES = {"float64": 1e-9, "float32": 1e-5}
STORED = {"float64": "F64", "int64": "I64"}
ERF = np.frompyfunc(math.erf, 1, 1)

# ---- values and files --------------------------------------------------------------------------


def noise(name, shape):
    """float64 in [-1, 1): splitmix64 of (FNV-1a 64 of the name) + flat index."""
    start = 0xCBF29CE484222325
    for byte in name.encode():
        start = (start ^ byte) * 0x100000001B3 % 2**64
    bits = np.arange(math.prod(shape), dtype=np.uint64)
    bits += np.uint64((start + 0x9E3779B97F4A7C15) % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    return (np.ldexp((bits >> np.uint64(11)).astype(np.float64), -52) - 1).reshape(shape)


def weight(name, shape):
    """One tensor of the network by the rule of the golden files."""
    r = noise(name, shape)
    if name in ("cls_token", "pos_embed"):
        return 0.02 * r
    if len(shape) > 1:
        return r / math.sqrt(math.prod(shape[1:]))
    return 1 + 0.1 * r if name.endswith(".weight") else 0.02 * r


def write_safetensors(path, tensors):
    header, end = {}, 0
    for name, tensor in tensors.items():
        begin, end = end, end + tensor.nbytes
        header[name] = {"dtype": STORED[str(tensor.dtype)], "shape": tensor.shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for tensor in tensors.values():
            file.write(tensor.astype(tensor.dtype.newbyteorder("<")).tobytes())


# ---- the network -------------------------------------------------------------------------------


class Network:
    """The forward pass; `layers` and `entropies` are what it saw on its way to `logits`."""

    def __init__(self, config, weights, images):
        self.config = config
        self.weights = weights
        self.layers = {}  # name: (B, N, C)
        self.entropies = {}  # name of a block: (B, heads, N)
        x = self.embed(images)
        self.layers["tokens"] = x
        for i in range(config["depth"]):
            name = f"blocks.{i}"
            x = x + self.attention(name, self.norm(name + ".norm1", x))
            x = x + self.mlp(name, self.norm(name + ".norm2", x))
            self.layers[name] = x
        self.layers["norm"] = x = self.norm("norm", x)
        self.logits = self.linear("head", x[:, 0])

    def linear(self, name, x):
        return x @ self.weights[name + ".weight"].T + self.weights[name + ".bias"]

    def norm(self, name, x):
        centred = x - x.mean(-1, keepdims=True)
        variance = np.square(centred).mean(-1, keepdims=True)
        unit = centred / np.sqrt(variance + self.config["layernorm_eps"])
        return unit * self.weights[name + ".weight"] + self.weights[name + ".bias"]

    def embed(self, images):
        batch, channels, height, _ = images.shape
        patch = self.config["patch_size"]
        side = height // patch
        cut = images.reshape(batch, channels, side, patch, side, patch).transpose(0, 2, 4, 1, 3, 5)
        kernel = self.weights["patch_embed.proj.weight"]
        x = cut.reshape(batch, side * side, -1) @ kernel.reshape(len(kernel), -1).T
        x = x + self.weights["patch_embed.proj.bias"]
        classes = np.broadcast_to(self.weights["cls_token"], (batch, 1, x.shape[-1]))
        return np.concatenate([classes, x], 1) + self.weights["pos_embed"]

    def attention(self, name, x):
        batch, tokens, width = x.shape
        heads = self.config["num_heads"]
        qkv = self.linear(name + ".attn.qkv", x).reshape(batch, tokens, 3, heads, width // heads)
        q, k, v = qkv.transpose(2, 0, 3, 1, 4)
        scores = q @ k.swapaxes(-2, -1) / math.sqrt(width // heads)
        scores = scores - scores.max(-1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(-1, keepdims=True))
        shares = np.exp(logs)
        self.entropies[name] = -(shares * logs).sum(-1)
        return self.linear(name + ".attn.proj", (shares @ v).swapaxes(1, 2).reshape(batch, tokens, width))

    def mlp(self, name, x):
        hidden = self.linear(name + ".mlp.fc1", x)
        gelu = hidden * (1 + ERF(hidden / math.sqrt(2)).astype(np.float64)) / 2
        return self.linear(name + ".mlp.fc2", gelu)


def check_with_golden(network, golden):
    """Ends the program where the pass here is not that of the authors' code."""
    apart = np.abs(network.logits - golden["logits"]).max()
    print(f"logits within {apart:.1e} of {GOLDEN.name}")
    if not apart <= TOLERANCES["float64"]:
        sys.exit("The numpy pass does not give the logits of the golden file.")
    for layer in golden["blocks"] + golden["stages"]:
        if layer["name"] not in network.layers:
            continue
        x = network.layers[layer["name"]]
        lengths = np.sqrt(np.square(x).sum((1, 2)))
        if not np.allclose(lengths, layer["l2"], rtol=TOLERANCES["float64"], atol=0):
            sys.exit(f"The numpy pass does not give the length of {layer['name']} of the golden file.")


# ---- what is measured --------------------------------------------------------------------------


def composite(x):
    sizes = np.abs(x)
    return math.sqrt(sizes.sum(0).max() * sizes.sum(1).max())


def residual(x):
    return x - x.mean(0)


def measured(x, first):
    """The numbers of one layer for one image; x and first are (N, C)."""
    rest, start = residual(x), residual(first)
    lengths = np.linalg.norm(x, axis=1)
    unit = x / lengths[:, None]
    cosines = unit @ unit.T
    pairs = cosines[~np.eye(len(x), dtype=bool)]
    values = np.linalg.svd(x, compute_uv=False)
    shares = values[values > 0] / values.sum()
    return {
        "residual_frobenius": np.linalg.norm(rest) / np.linalg.norm(x),
        "residual_composite": composite(rest) / composite(x),
        "residual_frobenius_of_input": np.linalg.norm(rest) / np.linalg.norm(start),
        "residual_composite_of_input": composite(rest) / composite(start),
        "token_cosine": pairs.mean(),
        "effective_rank": math.exp(-(shares * np.log(shares)).sum()),
        "activation_norm": lengths.mean(),
    }


def report(network):
    """What `adjoin inspect --json` must say."""
    layers = []
    for name, batch in network.layers.items():
        images = [measured(x, first) for x, first in zip(batch, network.layers["tokens"])]
        layer = {key: float(np.mean([image[key] for image in images])) for key in images[0]}
        entropy = network.entropies[name].mean((0, 2)).tolist() if name in network.entropies else []
        layers.append({"name": name, **layer, "attention_entropy": entropy})
    top = network.logits.max(-1, keepdims=True)
    logs = network.logits - top - np.log(np.exp(network.logits - top).sum(-1, keepdims=True))
    return {
        "loss": float(-np.mean([row[label] for row, label in zip(logs, LABELS)])),
        "top1": float(100 * np.mean(network.logits.argmax(-1) == LABELS)),
        "layers": layers,
    }


# ---- beside adjoin -----------------------------------------------------------------------------


def inspected(adjoin, folder, dtype):
    command = [adjoin, "inspect", str(folder / "deit_tiny.safetensors"), "--model", MODEL]
    command += ["--data", str(folder / "input.safetensors"), "--dtype", dtype, "--json"]
    try:
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive"}
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
    except OSError as error:
        sys.exit(f"{adjoin} cannot be run: {error.strerror}.")
    if done.returncode != 0:
        sys.exit(f"adjoin inspect --dtype {dtype} ended with {done.returncode}: {done.stderr.strip()}")
    try:
        return json.loads(done.stdout)
    except ValueError as error:
        sys.exit(f"adjoin inspect --dtype {dtype} printed no JSON: {error}.")


def difference(value, expected):
    """Infinite where the value is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return math.inf
    return abs(value - expected) / max(1, abs(expected))


def pairs_of(theirs, ours, dtype):
    """(key, place, their number, ours) of everything compared; ends the program where the layers are others."""
    names = [layer.get("name") for layer in theirs.get("layers", [])]
    expected = [layer["name"] for layer in ours["layers"]]
    if missing := [name for name in expected if name not in names]:
        sys.exit(f"adjoin inspect --dtype {dtype} has no layer {', '.join(missing)}.")
    if names != expected:
        sys.exit(f"adjoin inspect --dtype {dtype} has the layers {names}, must have {expected}.")
    pairs = [(key, "the network", theirs.get(key), ours[key]) for key in ("loss", "top1")]
    for got, layer in zip(theirs["layers"], ours["layers"]):
        name = layer["name"]
        for key in layer.keys() - {"name", "attention_entropy"}:
            pairs.append((key, name, got.get(key), layer[key]))
        heads, wanted = got.get("attention_entropy") or [], layer["attention_entropy"]
        if len(heads) != len(wanted):
            sys.exit(f"adjoin inspect --dtype {dtype} has {len(heads)} heads in {name}, must have {len(wanted)}.")
        for i, (value, number) in enumerate(zip(heads, wanted)):
            pairs.append(("attention_entropy", f"{name} head {i}", value, number))
    return pairs


def compare(theirs, ours, dtype):
    """{key: (largest difference, place, their number, ours)}"""
    worst = {}
    for key, place, value, expected in pairs_of(theirs, ours, dtype):
        apart = difference(value, expected)
        if key not in worst or apart > worst[key][0]:
            worst[key] = (apart, place, value, expected)
    return worst


def print_differences(worst_by_dtype, keys):
    heads = [f"  {dtype:>8}  {'in':18}" for dtype in worst_by_dtype]
    print(f"{'largest differences':28}{''.join(heads)}".rstrip())
    for key in keys:
        cells = [f"  {worst[key][0]:8.1e}  {worst[key][1]:18}" for worst in worst_by_dtype.values()]
        print(f"{key:28}{''.join(cells)}".rstrip())


def check_with_adjoin(adjoin, folder, ours):
    worst_by_dtype = {dtype: compare(inspected(adjoin, folder, dtype), ours, dtype) for dtype in TOLERANCES}
    keys = ["loss", "top1", *(key for key in ours["layers"][0] if key != "name")]
    print_differences(worst_by_dtype, keys)
    wrong = [
        f"adjoin inspect --dtype {dtype} has {key} {worst[key][2]} in {worst[key][1]}, must have {worst[key][3]}: "
        f"apart by {worst[key][0]:.1e}, above {TOLERANCES[dtype]:g}."
        for dtype, worst in worst_by_dtype.items()
        for key in keys
        if not worst[key][0] <= TOLERANCES[dtype]
    ]
    if wrong:
        sys.exit("\n".join(wrong))


def main():
    parser = argparse.ArgumentParser(description="Layers of DeiT-Tiny by numpy beside those of adjoin inspect.")
    parser.add_argument("--adjoin", required=True, help="the program")
    parser.add_argument("--folder", type=Path, help="for the model and the images (default: a temporary one)")
    args = parser.parse_args()
    golden = json.loads(GOLDEN.read_text())
    weights = {key["name"]: weight(key["name"], key["shape"]) for key in golden["keys"]}
    images = noise("input", golden["input"]["shape"])
    network = Network(golden["config"], weights, images)
    check_with_golden(network, golden)
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.folder or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        write_safetensors(folder / "deit_tiny.safetensors", weights)
        write_safetensors(folder / "input.safetensors", {"input": images, "labels": np.array(LABELS, np.int64)})
        check_with_adjoin(args.adjoin, folder, report(network))


if __name__ == "__main__":
    main()
