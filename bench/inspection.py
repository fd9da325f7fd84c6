#!/usr/bin/env python3
"""Time `adjoin inspect`'s look at a network beside one forward and backward pass of the same images.

Both run in the same worker, in turns, float32 on the CPU; numbers are medians. Before any is timed, both must find the same
loss. (The file is not called inspect.py: Python's own module of that name would be hidden from every script here.)

  bench/inspection.py [--worker build/release/bench/bench_inspection] [--require 3]
"""

import argparse
import statistics
import sys

from mixers import Worker

ROWS = "deit_tiny_patch16_224:16,vit_mini_32:16,swin_tiny_patch4_window7_224:4,t2t_vit_14:4"


def main():
    parser = argparse.ArgumentParser(description="Time an inspection beside a forward and backward pass.")
    parser.add_argument("--worker", default="build/release/bench/bench_inspection", help="its C++ side")
    parser.add_argument("--rows", default=ROWS, help="model:batch, comma-separated")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--require", type=float, help="fail when a ratio is above this")
    args = parser.parse_args()
    worst = 0
    print(f"{'model':32}{'batch':>6}{'forward+backward ms':>21}{'inspect ms':>12}{'ratio':>7}")
    for item in args.rows.split(","):
        model, batch = item.split(":")
        worker = Worker(args.worker, model=model, batch=int(batch), threads=args.threads)
        if worker.about["gap"] > 1e-4:
            sys.exit(f"{model}: the losses differ by {worker.about['gap']:.2g}")
        times = {"train": [], "inspect": []}
        for _ in range(args.rounds):
            for what, found in times.items():
                found.append(worker.ask(op="run", what=what)["ms"])
        worker.quit()
        train, seen = (statistics.median(times[what]) for what in ("train", "inspect"))
        worst = max(worst, seen / train)
        print(f"{model:32}{batch:>6}{train:>21.1f}{seen:>12.1f}{seen / train:>7.2f}", flush=True)
    if args.require is not None and worst > args.require:
        sys.exit(f"an inspection takes {worst:.2f} of a forward and backward pass, above {args.require:g}")


if __name__ == "__main__":
    main()
