#!/usr/bin/env python3
"""Time until a 350 MB model (DeiT-B) is in memory: ours from .safetensors and .pth, torch.load from .pth.

  bench/load.py --build build/release [--rounds 15] [--require]

Every load is a process of its own; the files are in the page cache for both sides. "read" means that
every weight was summed once, so that no side can put the reading off. With --require the exit status
is 1 unless ours loads in under 0.5 s and makes no second copy of the weights.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

import reference_models

PYTHON = """
import json, sys, time, torch
torch.set_num_threads(2)
torch.zeros(1000).sum()
def own():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(l for l in lines if l.startswith("RssAnon:")).split()[1]) * 1024
before, start = own(), time.perf_counter()
sd = torch.load(sys.argv[1], map_location="cpu")["model"]
loaded = time.perf_counter()
total = sum(t.sum().item() for t in sd.values())
read = time.perf_counter()
print(json.dumps({"load_s": loaded - start, "load_and_read_s": read - start, "sum": total,
                  "weight_bytes": sum(t.numel() * 4 for t in sd.values()), "own_bytes": own() - before}))
"""


def run(command):
    env = dict(os.environ, OMP_WAIT_POLICY="passive")
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr}")
    return json.loads(done.stdout) if done.stdout.startswith("{") else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", default="build/release", type=Path)
    parser.add_argument("--rounds", default=15, type=int)
    parser.add_argument("--require", action="store_true")
    args = parser.parse_args()
    worker = str(args.build / "bench" / "bench_load")
    with tempfile.TemporaryDirectory() as folder:
        pth, own = f"{folder}/deit.pth", f"{folder}/deit.safetensors"
        torch.manual_seed(0)
        torch.save({"model": reference_models.build("deit_base_patch16_224").state_dict()}, pth)
        run([str(args.build / "bin" / "adjoin"), "convert", pth, own])
        contenders = {
            "torch.load, .pth": [sys.executable, "-c", PYTHON, pth],
            "adjoin, .pth": [worker, pth],
            "adjoin, .safetensors": [worker, own],
        }
        results = {name: [] for name in contenders}
        for _ in range(args.rounds):
            for name, command in contenders.items():
                results[name].append(run(command))
    sums = [rows[0]["sum"] for rows in results.values()]
    if max(sums) - min(sums) > 1e-2:
        sys.exit(f"the contenders read different weights: sums {sums}")

    def median(name, key):
        return statistics.median(row[key] for row in results[name])

    size = results["adjoin, .safetensors"][0]["weight_bytes"]
    print(f"{size / 1e6:.0f} MB of weights, medians of {args.rounds} rounds")
    print(f"{'':22}{'load ms':>10}{'load + read ms':>16}{'own memory MB':>16}")
    for name in contenders:
        print(f"{name:22}{median(name, 'load_s') * 1e3:>10.1f}"
              f"{median(name, 'load_and_read_s') * 1e3:>16.1f}{median(name, 'own_bytes') / 1e6:>16.1f}")
    if args.require:
        for name in list(contenders)[1:]:
            if median(name, "load_s") >= 0.5:
                sys.exit(f"{name}: {median(name, 'load_s'):.2f} s, must be under 0.5 s")
            if median(name, "own_bytes") > 0.1 * size:
                sys.exit(f"{name}: {median(name, 'own_bytes') / 1e6:.0f} MB are a second copy")


if __name__ == "__main__":
    main()
