#!/usr/bin/env python3
"""Time and memory of every mixer from 256 to 8192 tokens, and how both grow.

One layer's queries, keys and values, float32, on the CPU. For each number of tokens the mixers take turns; times are
medians. A table gives milliseconds, another the peak of memory above what the inputs take, a third the exponent of the
wall clock beside that of the counted MACs (of scores and values) and that of the theory, with the steps that must be
taken one after the other. Growth is fitted over the four longest lengths: short ones measure the cost of a call.

  bench/mixers.py [--worker build/release/bench/bench_mixers] [--mode eval|train] [--json FILE]
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from pathlib import Path

THEORY = {  # growth of MACs, steps in a row
    "softmax": ("n^2", "1"),
    "linformer": ("n", "1"),
    "sparse-strided": ("n^1.5", "1"),
    "sparse-fixed": ("n^1.5", "1"),
    "lsh": ("n log n", "log n"),
    "linear": ("n", "1"),
    "recurrent": ("n", "n"),
}


class Worker:
    def __init__(self, program, **request):
        env = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": str(request["threads"])}
        self.process = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )
        self.about = self.ask(op="load", **request)

    def ask(self, **request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            sys.exit(answer["error"])
        return answer

    def quit(self):
        self.process.stdin.close()
        self.process.wait()


def slope(xs, ys):
    """Least squares of log y over log x."""
    lx, ly = [math.log(x) for x in xs], [math.log(y) for y in ys]
    mx, my = statistics.mean(lx), statistics.mean(ly)
    return sum((a - mx) * (b - my) for a, b in zip(lx, ly)) / sum((a - mx) ** 2 for a in lx)


def measure(args, tokens):
    """{kind: {"ms", "mib", "macs", "steps"}} at one length."""
    shared = {"tokens": tokens, "heads": args.heads, "dim": args.dim, "threads": args.threads, "causal": False}
    workers = {kind: Worker(args.worker, kind=kind, **shared) for kind in THEORY}
    first = {kind: worker.ask(op=args.mode) for kind, worker in workers.items()}
    times = {kind: [] for kind in workers}
    for _ in range(args.rounds):
        for kind, worker in workers.items():
            times[kind].append(worker.ask(op=args.mode)["ms"])
    for worker in workers.values():
        worker.quit()
    return {
        kind: {
            "ms": statistics.median(times[kind]),
            "mib": first[kind]["peak_kib"] / 1024,
            "macs": worker.about["macs_attention"],
            "steps": worker.about["steps"],
        }
        for kind, worker in workers.items()
    }


def table(title, lengths, found, key, form):
    print(f"\n{title}\n{'tokens':16}" + "".join(f"{n:>10}" for n in lengths))
    for kind in THEORY:
        print(f"{kind:16}" + "".join(f"{found[n][kind][key]:>10{form}}" for n in lengths))


def main():
    parser = argparse.ArgumentParser(description="Times the mixers.")
    parser.add_argument("--worker", default="build/release/bench/bench_mixers", help="its C++ side")
    parser.add_argument("--mode", choices=["eval", "train"], default="eval", help="forward alone, or with backward")
    parser.add_argument("--heads", type=int, default=2)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--most", type=int, default=8192, help="tokens")
    parser.add_argument("--json", help="write the numbers here")
    args = parser.parse_args()
    lengths = [n for n in (256, 512, 1024, 2048, 4096, 8192) if n <= args.most]
    found = {n: measure(args, n) for n in lengths}
    print(f"{args.heads} heads of {args.dim}, batch 1, {args.threads} threads, {args.mode}")
    table("milliseconds", lengths, found, "ms", ".2f")
    table("MiB above the inputs", lengths, found, "mib", ".1f")
    last = lengths[-4:]
    print(f"\n{'growth':16}{'clock':>8}{'MACs':>8}{'theory':>10}{'steps in a row':>16}{'theory':>8}")
    for kind, (theory, steps) in THEORY.items():
        clock = slope(last, [found[n][kind]["ms"] for n in last])
        macs = slope(last, [found[n][kind]["macs"] for n in last])
        print(f"{kind:16}{clock:>8.2f}{macs:>8.2f}{theory:>10}{found[last[-1]][kind]['steps']:>16}{steps:>8}")
    if 4096 in found:
        at = found[4096]
        print("\nat 4096 tokens, softmax = 1: " + ", ".join(f"{k} {at[k]['ms'] / at['softmax']['ms']:.2f}" for k in THEORY))
    if args.json:
        Path(args.json).write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
