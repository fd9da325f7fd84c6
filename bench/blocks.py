#!/usr/bin/env python3
"""What the parts of a block are worth: accuracy and speed of one recipe with each of them.

  norms      pre, post and res-post, with and without augmented shortcuts, at depth 8 and 24
  mixers     each of them in all blocks, at depth 8

All are trained side by side; then the speed of training steps is measured, one network at a time (`adjoin train --dry-run`).
It may be stopped and called again: what the file of --json has is not done again, and run folders are resumed.
`blocks.py FILE.json ..` prints the table.

  nvidia-cuda-mps-control -d        # lets the kernels of several processes run at once
  bench/blocks.py --adjoin build/cuda/bin/adjoin --data folder:DIR --epochs 40 --jobs 7 --json blocks.json
"""

import argparse
import json
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

NORMS = ("pre", "post", "res-post")
MIXERS = ("relative", "linformer", "sparse-strided", "sparse-fixed", "lsh", "linear", "recurrent")


def rows():
    """{name: changes to the recipe}, those that take longest first."""
    found = {}
    for depth in (24, 8):
        for norm in NORMS:
            for shortcut in ("circulant", "none"):
                name = f"{norm}-{depth}" + ("" if shortcut == "none" else "-shortcuts")
                found[name] = f"--set model.depth={depth} --set model.norm={norm} --set model.shortcut={shortcut}"
    for mixer in MIXERS:
        found[mixer] = f"--set model.depth=8 --set model.mixer={mixer}"
    return found


def ask(words):
    done = subprocess.run([*words, "--json", "--progress", "silent"], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{shlex.join(words)}: exit {done.returncode}: {done.stderr.strip()}", flush=True)
        return None
    return json.loads(done.stdout)


def command(args, changes, seed):
    words = [args.adjoin, "train", "--config", args.config, *shlex.split(changes), *shlex.split(args.more)]
    words += ["--data", args.data]
    return [*words, "--seed", str(seed), "--epochs", str(args.epochs)]


def train(args, name, changes, seed):
    began = time.time()
    words = command(args, changes, seed)
    result = ask([*words, "--output", str(Path(args.output) / name / str(seed)), "--resume"])
    if result is None:
        return None
    print(f"{name}, seed {seed}: {result['top1']:.2f}  ({time.time() - began:.0f} s)", flush=True)
    return {"row": name, "seed": seed, "top1": result["top1"], "command": shlex.join(["adjoin", *words[1:]])}


def speed(args, changes):
    answer = ask([*command(args, changes, 0), "--limit-train", "5120", "--limit-val", "1000", "--dry-run"])
    if answer is None:
        return None
    estimate = answer["estimate"]
    batch = estimate["images"] // estimate["steps_per_epoch"]
    return {
        "images_per_second": batch / estimate["step_seconds"],
        "params": answer["params"],
        "macs": answer["macs"],
    }


def print_table(found):
    print(f"\n{'row':24}{'params':>12}{'MACs':>14}{'images/s':>10}  top1")
    for name in rows():
        mine = sorted((run for run in found["runs"] if run["row"] == name), key=lambda run: run["seed"])
        one = found["speeds"].get(name)
        if not mine or not one:
            continue
        each = " ".join(f"{run['top1']:.2f}" for run in mine)
        print(f"{name:24}{one['params']:>12,}{one['macs']:>14,}{one['images_per_second']:>10.0f}  {each}")


def main():
    parser = argparse.ArgumentParser(description="Accuracy and speed of the parts of a block.")
    parser.add_argument("file", nargs="?", help="results of an earlier go: print their table, train nothing")
    parser.add_argument("--adjoin", help="the program")
    parser.add_argument("--data", help="as for adjoin train")
    parser.add_argument("--config", default="recipes/vit_mini_32.yaml", help="the recipe")
    parser.add_argument("--more", default="", help="further arguments of adjoin train")
    parser.add_argument("--rows", help="comma-separated names; default all")
    parser.add_argument("--seed", type=int, action="append", help="default 0")
    parser.add_argument("--jobs", type=int, default=4, help="trainings at a time")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--output", default="runs/blocks", help="folder of the run folders")
    parser.add_argument("--json", help="write results here")
    args = parser.parse_args()
    if args.file:
        print_table(json.loads(Path(args.file).read_text()))
        return
    if not args.adjoin or not args.data:
        parser.error("--adjoin and --data are needed to train")
    known = rows()
    wanted = args.rows.split(",") if args.rows else list(known)
    if unknown := set(wanted) - set(known):
        sys.exit(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    found = {"runs": [], "speeds": {}}
    if args.json and Path(args.json).exists():
        found = json.loads(Path(args.json).read_text())

    def write():
        if args.json:
            Path(args.json).write_text(json.dumps(found, indent=1) + "\n")

    has = {(run["row"], run["seed"]) for run in found["runs"]}
    jobs = [(name, known[name], seed) for seed in args.seed or [0] for name in wanted if (name, seed) not in has]
    failed = []
    with ThreadPoolExecutor(args.jobs) as pool:
        futures = {pool.submit(train, args, *job): job[0] for job in jobs}
        for future in as_completed(futures):
            if run := future.result():
                found["runs"].append(run)
                write()
            else:
                failed.append(futures[future])
    for name in wanted:
        if name not in found["speeds"]:
            if one := speed(args, known[name]):
                found["speeds"][name] = one
                write()
            else:
                failed.append(name)
    print_table(found)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
