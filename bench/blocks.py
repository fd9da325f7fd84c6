#!/usr/bin/env python3
"""What the parts of a block are worth: accuracy and speed of one recipe with each of them.

  norms      pre, post and res-post, with and without augmented shortcuts, at depth 8 and 24
  mixers     each of them in all blocks, at depth 8

Speed is that of training steps, one network at a time (`adjoin train --dry-run`); then all are trained side by side. It may
be stopped and called again: what the file of --json has is not measured again, and run folders are resumed.
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
        found[mixer] = f"--set model.mixer={mixer}"
    return found


def ask(words):
    done = subprocess.run([*words, "--json", "--progress", "silent"], capture_output=True, text=True)
    if done.returncode != 0:
        print(f"{shlex.join(words)}: exit {done.returncode}: {done.stderr.strip()}", flush=True)
        return None
    return json.loads(done.stdout)


def command(args, changes, seed):
    words = [args.adjoin, "train", "--config", args.config, *shlex.split(changes), "--data", args.data]
    return [*words, "--seed", str(seed), "--epochs", str(args.epochs)]


def train(args, name, changes, seed, speed):
    began = time.time()
    words = command(args, changes, seed)
    result = ask([*words, "--output", str(Path(args.output) / name / str(seed)), "--resume"])
    if result is None:
        return None
    print(f"{name}, seed {seed}: {result['top1']:.2f}  ({time.time() - began:.0f} s)", flush=True)
    return {
        "row": name,
        "seed": seed,
        "top1": result["top1"],
        "images_per_second": speed["images_per_second"],
        "params": speed["params"],
        "macs": speed["macs"],
        "command": shlex.join(["adjoin", *words[1:]]),
    }


def print_table(runs):
    print(f"\n{'row':24}{'params':>12}{'MACs':>14}{'images/s':>10}  top1")
    for name in rows():
        mine = sorted((run for run in runs if run["row"] == name), key=lambda run: run["seed"])
        if not mine:
            continue
        each = " ".join(f"{run['top1']:.2f}" for run in mine)
        first = mine[0]
        print(f"{name:24}{first['params']:>12,}{first['macs']:>14,}{first['images_per_second']:>10.0f}  {each}")


def main():
    parser = argparse.ArgumentParser(description="Accuracy and speed of the parts of a block.")
    parser.add_argument("files", nargs="*", help="results of earlier goes: print their table, train nothing")
    parser.add_argument("--adjoin", help="the program")
    parser.add_argument("--data", help="as for adjoin train")
    parser.add_argument("--config", default="recipes/vit_mini_32.yaml", help="the recipe")
    parser.add_argument("--rows", help="comma-separated names; default all")
    parser.add_argument("--seed", type=int, action="append", help="default 0")
    parser.add_argument("--jobs", type=int, default=4, help="trainings at a time")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--output", default="runs/blocks", help="folder of the run folders")
    parser.add_argument("--json", help="write results here")
    args = parser.parse_args()
    if args.files:
        print_table([run for file in args.files for run in json.loads(Path(file).read_text())["runs"]])
        return
    if not args.adjoin or not args.data:
        parser.error("--adjoin and --data are needed to train")
    known = rows()
    wanted = args.rows.split(",") if args.rows else list(known)
    if unknown := set(wanted) - set(known):
        sys.exit(f"no such row: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    kept = json.loads(Path(args.json).read_text()) if args.json and Path(args.json).exists() else {}
    speeds, runs = kept.get("speeds", {}), kept.get("runs", [])

    def write():
        if args.json:
            Path(args.json).write_text(json.dumps({"speeds": speeds, "runs": runs}, indent=1) + "\n")

    for name in wanted:
        if name in speeds:
            continue
        answer = ask([*command(args, known[name], 0), "--limit-train", "5120", "--limit-val", "1000", "--dry-run"])
        if answer is None:
            sys.exit(1)
        estimate = answer["estimate"]
        batch = estimate["images"] // estimate["steps_per_epoch"]
        speed = batch / estimate["step_seconds"]
        speeds[name] = {"images_per_second": speed, "params": answer["params"], "macs": answer["macs"]}
        write()
    has = {(run["row"], run["seed"]) for run in runs}
    pairs = [(name, seed) for seed in args.seed or [0] for name in wanted if (name, seed) not in has]
    failed = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        jobs = [(name, known[name], seed, speeds[name]) for name, seed in pairs]
        for future in as_completed([pool.submit(train, args, *job) for job in jobs]):
            if found := future.result():
                runs.append(found)
                write()
            else:
                failed += 1
    print_table(runs)
    if failed:
        sys.exit(f"{failed} of {len(jobs)} trainings failed")


if __name__ == "__main__":
    main()
