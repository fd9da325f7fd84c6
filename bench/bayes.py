#!/usr/bin/env python3
"""Bayesian proposals of networks: how long a batch takes, and whether what is found is better than random.

The reward is a sum over blocks that can be computed at once, on real choices of a network (blocks removed, heads, hidden
units, skips). `random` draws, `features` is a Gaussian process on numbers made by hand, `embedding` one on points that a
bidirectional LSTM learns. One core.

  bench/bayes.py [--worker build/release/bench/bench_bayes] [--seeds 10] [--trials 60] [--require 60]
                 [--require-wins 8]
  bench/bayes.py --share RUN/result.json ..     # of searches that were run: which part of their time went into proposals
"""

import argparse
import json
import statistics
import sys
from pathlib import Path

from mixers import Worker

WAYS = ("random", "features", "embedding")
TIMED = ((24, 1), (200, 1), (200, 0.45), (200, 0.1))  # trials that are known, most MACs of those of the large network


def print_shares(files):
    for file in files:
        run = json.loads(Path(file).read_text())
        share = run["proposal_seconds"] / run["search_seconds"]
        print(f"{file}: {run['proposal_seconds']:.1f} of {run['search_seconds']:.1f} s, {100 * share:.1f} %")


def main():
    parser = argparse.ArgumentParser(description="Bayesian proposals beside random ones.")
    parser.add_argument("--worker", default="build/release/bench/bench_bayes", help="its C++ side")
    parser.add_argument("--model", default="vit_mini_32")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--require", type=float, help="fail when a batch from 200 trials takes more seconds")
    parser.add_argument("--require-wins", type=int, help="fail when a process beats random draws in fewer seeds")
    parser.add_argument("--json", help="write the numbers here")
    parser.add_argument("--share", nargs="+", metavar="FILE", help="results of searches; nothing else is done")
    args = parser.parse_args()
    if args.share:
        return print_shares(args.share)
    worker = Worker(args.worker, threads=1)
    common = {"model": args.model, "batch": args.batch}
    print(f"a batch of {args.batch}, seconds:" + "".join(f"  {known} trials, {share:g}x" for known, share in TIMED))
    times = {}
    for way in WAYS:
        times[way] = [
            worker.ask(op="time", way=way, trials=known, share=share, **common)["seconds"] for known, share in TIMED
        ]
        cells = (f"{time:{len(f'  {known} trials, {share:g}x')}.2f}" for time, (known, share) in zip(times[way], TIMED))
        print(f"  {way:22}" + "".join(cells), flush=True)
    found = {way: [] for way in WAYS}
    for seed in range(args.seeds):
        for way in WAYS:
            found[way].append(worker.ask(op="search", way=way, seed=seed, trials=args.trials, **common)["best"])
        print(f"seed {seed}: " + ", ".join(f"{way} {found[way][-1]:.3f}" for way in WAYS), flush=True)
    worker.quit()
    wins = {}
    print(f"\nbest reward after {args.trials} trials, {args.seeds} seeds")
    for way in WAYS:
        wins[way] = sum(a > b for a, b in zip(found[way], found["random"]))
        print(f"  {way:10} mean {statistics.mean(found[way]):.3f}, better than random in {wins[way]} of {args.seeds}")
    if args.json:
        Path(args.json).write_text(json.dumps({"seconds": times, "best": found}, indent=1) + "\n")
    longest = max(max(list) for list in times.values())
    if args.require is not None and longest > args.require:
        sys.exit(f"a batch takes {longest:.1f} s, above {args.require:g}")
    fewest = min(wins["features"], wins["embedding"])
    if args.require_wins is not None and fewest < args.require_wins:
        sys.exit(f"better than random in {fewest} of {args.seeds} seeds, fewer than {args.require_wins}")


if __name__ == "__main__":
    main()
