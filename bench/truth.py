#!/usr/bin/env python3
"""What architectures around vit_mini_32 reach on CIFAR-10, to judge proxies by.

Draws 60 architectures (width, depth, heads and hidden units of every block), trains each with one recipe, the first
15 with a second seed too, side by side on one GPU, and writes

  archs.jsonl   the architectures that are trained, as `adjoin rank --archs` reads them
  cifar10.csv   name, top1: what `adjoin rank --truth` reads
  noise.csv     name, and the accuracies of the two seeds

A training whose accuracy is in the tables is not done again: call it as often as needed.

  nvidia-cuda-mps-control -d        # lets the kernels of several processes run at once
  bench/truth.py --adjoin build/cuda/bin/adjoin --data folder:DIR --jobs 14 --output runs/truth --table data/vit_bench
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

COUNT = 60
WITH_TWO_SEEDS = 15
RECIPE = "--config recipes/vit_mini_32.yaml --epochs 20 --warmup-epochs 2".split()


def architectures():
    """The same 60 on every machine."""
    rng = random.Random(4)
    found = []
    while len(found) < COUNT:
        depth = rng.choice([3, 4, 5, 6, 7, 8])
        most_heads, most_ratio = rng.choice([2, 4, 8]), rng.choice([1, 2, 3])
        found.append(
            {
                "name": f"vit-{len(found):02}",
                "embed_dim": rng.choice([96, 128, 192, 256]),
                "depth": depth,
                "heads": [rng.randint(1, most_heads) for _ in range(depth)],
                "mlp_ratio": [rng.choice([0.5, 1, 2, 3][: most_ratio + 1]) for _ in range(depth)],
                "head_dim": 32,
                "patch_size": 4,
                "img_size": 32,
                "num_classes": 10,
            }
        )
    return found


def train(arch, seed, args):
    folder = Path(args.output) / f"{arch['name']}-seed-{seed}"
    folder.mkdir(parents=True, exist_ok=True)
    model = folder / "model.json"
    model.write_text(json.dumps(arch))
    began = time.time()
    words = [args.adjoin, "train", *RECIPE, "--model", model, "--data", args.data, "--seed", str(seed)]
    words += ["--output", folder, "--resume", "--progress", "silent", "--json"]
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{folder.name}: exit {done.returncode}: {done.stderr.strip()}", flush=True)
        return arch["name"], seed, None
    print(f"{folder.name}: {time.time() - began:.0f} s", flush=True)
    return arch["name"], seed, json.loads(done.stdout)["top1"]


def known(table):
    """{(name, seed): top1} of the tables."""
    found = {}
    for name in ("cifar10.csv", "noise.csv"):
        path = Path(table) / name
        lines = path.read_text().splitlines()[1:] if path.exists() else []
        for row in (line.split(",") for line in lines):
            found.update({(row[0], seed): float(top1) for seed, top1 in enumerate(row[1:])})
    return found


def write_tables(archs, found, table):
    table = Path(table)
    table.mkdir(parents=True, exist_ok=True)
    names = [arch["name"] for arch in archs]
    trained = [arch for arch in archs if (arch["name"], 0) in found]
    (table / "archs.jsonl").write_text("".join(json.dumps(arch) + "\n" for arch in trained))
    rows = [f"{name},{found[name, 0]:.2f}\n" for name in names if (name, 0) in found]
    (table / "cifar10.csv").write_text("name,top1\n" + "".join(rows))
    both = [name for name in names if (name, 0) in found and (name, 1) in found]
    rows = [f"{name},{found[name, 0]:.2f},{found[name, 1]:.2f}\n" for name in both]
    (table / "noise.csv").write_text("name,seed_0,seed_1\n" + "".join(rows))


def ranks(values):
    """Places, those of equal values shared."""
    ordered = sorted(values)
    return [ordered.index(value) + (ordered.count(value) - 1) / 2 for value in values]


def print_noise(found):
    """How far two seeds of one architecture are apart, and how alike they rank."""
    names = sorted(name for name, seed in found if seed == 1 and (name, 0) in found)
    if len(names) < 2:
        return
    one, other = ([found[name, seed] for name in names] for seed in (0, 1))
    spread = (sum((a - b) ** 2 for a, b in zip(one, other)) / (2 * len(names))) ** 0.5
    x, y = ranks(one), ranks(other)
    middle = (len(names) - 1) / 2
    products = [sum((a - middle) * (b - middle) for a, b in zip(*pair)) for pair in ((x, y), (x, x), (y, y))]
    spearman = products[0] / (products[1] * products[2]) ** 0.5
    print(f"{len(names)} with two seeds: standard deviation of one {spread:.2f}, Spearman of the two {spearman:.3f}")


def main():
    parser = argparse.ArgumentParser(description="Trains architectures to judge proxies by.")
    parser.add_argument("--adjoin", required=True, help="the program")
    parser.add_argument("--data", required=True, help="as for adjoin train")
    parser.add_argument("--jobs", type=int, default=4, help="trainings at a time")
    parser.add_argument("--output", default="runs/truth", help="folder of the run folders")
    parser.add_argument("--table", default="data/vit_bench", help="folder of the tables")
    args = parser.parse_args()
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    archs = architectures()
    every = [(arch, 0) for arch in archs] + [(arch, 1) for arch in archs[:WITH_TWO_SEEDS]]
    found = known(args.table)
    jobs = [(arch, seed) for arch, seed in every if (arch["name"], seed) not in found]
    with ThreadPoolExecutor(args.jobs) as pool:
        for future in as_completed([pool.submit(train, *job, args) for job in jobs]):
            name, seed, top1 = future.result()
            if top1 is not None:
                found[name, seed] = top1
                write_tables(archs, found, args.table)
    print_noise(found)
    print(f"{len(found)} of {len(every)} trainings are done")
    if len(found) < len(every):
        sys.exit(1)


if __name__ == "__main__":
    main()
