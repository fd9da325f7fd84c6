#!/usr/bin/env python3
"""Time steps of a search over compression factors, by the number of candidates a block has.

  adjoined   a large network and a small one that is all of it (alpha 1) are trained together
  one pass   the small one is a mixture over 1, 2 or 4 candidates per block, computed as one network
             whose output matrices have their columns scaled
  target     one pass over 4 candidates with a target in MACs, which also moves the multiplier
  explicit   the same mixture by its definition: every candidate of every block is computed

All run in the same worker, interleaved: float32 on a CPU, bf16 autocast on a GPU. Numbers are the time of
a step over that of an adjoined step. Before any is timed, one-pass and explicit steps must agree on the
first losses.
"""

import sys

from adjoined import Steps
from forward import Worker
from train import check_losses, measure, parse_steps, run_bench, step_arguments

CPU_ROWS = "vit_mini_32:64,swin_mini_32:64,t2t_mini_32:64"
GPU_ROWS = "vit_mini_32:512,deit_small_patch16_224:128,swin_base_patch4_window7_224:32"
CANDIDATES = (1, 2, 4)
ONE_PASS = [*(f"one_pass_{n}" for n in CANDIDATES), "target_4"]
KINDS = ["adjoined", *ONE_PASS, *(f"explicit_{n}" for n in CANDIDATES)]


class DanWorker(Worker):
    def load(self, name, batch, device):
        dtype = "bf16" if device == "cuda" else "float32"
        request = {"op": "load", "model": name, "batch": batch, "threads": self.threads}
        answer = self.ask("losses", device=device, dtype=dtype, **request)
        self.version = answer.get("torch", "unknown")
        return answer["losses"]


def compare(args, worker):
    sides = {what: Steps(worker, what) for what in KINDS}
    heads = "  ".join(f"{what.replace('_', ' '):>10}" for what in KINDS[1:])
    print(f"{'model':28}  batch  adjoined ms  {heads}")
    rows = []
    for item in args.rows.split(","):
        name, batch = item.split(":")
        losses = worker.load(name, int(batch), args.device)
        for n in CANDIDATES:
            # T2T's token layers drop a tenth at random.
            tolerance = 5e-2 if args.device == "cuda" or name.startswith("t2t") else 1e-3
            pair = {"adjoin": losses[f"one_pass_{n}"][:1], "explicit": losses[f"explicit_{n}"][:1]}
            check_losses(f"{name}, {n} candidates", pair, tolerance)
        ms = measure(sides, args.rounds, args.repeats)
        ratios = {what: ms[what] / ms["adjoined"] for what in KINDS[1:]}
        rows.append({"model": name, "batch": int(batch), "ms": ms, "ratios": ratios})
        shown = "  ".join(f"{value:10.3f}" for value in ratios.values())
        print(f"{name:28}  {batch:>5}  {ms['adjoined']:11.2f}  {shown}", flush=True)
    return rows


def highest_ratio(rows):
    return max(row["ratios"][what] for row in rows for what in ONE_PASS)


def highest(rows):
    worst = highest_ratio(rows)
    return f"highest one-pass step {worst:.3f} of an adjoined one"


def main():
    parser = step_arguments("Time steps of a search.", "model:batch, comma-separated")
    parser.add_argument("--require", type=float, help="fail when a one-pass ratio is above this")
    args = parse_steps(parser, CPU_ROWS, GPU_ROWS)
    rows = run_bench(args, DanWorker, compare, highest)
    worst = highest_ratio(rows)
    if args.require is not None and worst > args.require:
        sys.exit(f"a one-pass step takes {worst:.3f} of an adjoined one, above {args.require:g}")


if __name__ == "__main__":
    main()
