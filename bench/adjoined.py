#!/usr/bin/env python3
"""Time adjoined training steps against steps of the large network alone and of separate networks.

  large      the C++ worker trains the large network: forward, cross entropy, backward, AdamW
  adjoined   the worker trains large and small networks in the same weights; the loss is the cross entropy
             of the large one + KL(p || q) of every small one, with gradients through both p and q
  two dense  Python trains the large network and dense small ones with weights of their own, same loss

A small network has heads / alpha heads and hidden / alpha hidden units in every block. Were time only
multiplications, an adjoined step would take 1 + (MACs of the small ones / MACs of the large one) times a
step of the large one; "extra" is what it takes on top of 1, in units of that fraction. The three are
interleaved in one run: float32 on a CPU, bf16 autocast on a GPU. Before any is timed, both languages
must agree on the first losses of the large network and on the first adjoined loss.

The worker speaks JSON lines:
  {"op": "load", "model", "batch", "alphas": [..], "threads", "device", "dtype"}
      -> {"losses": {"large": [..], "adjoined": [..]}, "large_macs": N,
          "small": [{"macs", "heads": [per block], "hidden": [per block], ..} per alpha], "torch", "threads"}
  {"op": "run", "what": "large" | "adjoined", "repeats": N} -> {"ms": MILLISECONDS PER STEP}
"""

import sys

from forward import Worker, positive
from train import PythonSide, check_losses, measure, parse_steps, run_bench, step_arguments

CPU_ROWS = (
    "deit_tiny_patch16_224:8:3,swin_tiny_patch4_window7_224:4:3,t2t_vit_14:4:2,t2t_vit_14:4:3,"
    "vit_mini_32:128:4,vit_mini_32:128:2+4+8"
)
GPU_ROWS = "deit_small_patch16_224:256:2,swin_base_patch4_window7_224:64:4,vit_12x192_32:512:2"
ALLOWED_EXTRA = 1.15
STEP_KINDS = ("large", "adjoined")


class AdjoinedWorker(Worker):
    def load(self, name, batch, alphas, device):
        request = {"op": "load", "model": name, "batch": batch, "alphas": alphas, "threads": self.threads}
        dtype = "bf16" if device == "cuda" else "float32"
        answer = self.ask("losses", device=device, dtype=dtype, **request)
        if answer.get("threads") != self.threads:
            used = answer.get("threads")
            sys.exit(f"the worker was asked to use {self.threads} threads and uses {used}")
        self.version = answer.get("torch", "unknown")
        return answer


class Steps:
    """One of the worker's two kinds of step."""

    def __init__(self, worker, what):
        self.worker, self.what = worker, what

    def run(self, repeats):
        return self.worker.ask("ms", op="run", what=self.what, repeats=repeats)["ms"]


class DenseSide(PythonSide):
    """The large network and one dense network per alpha, trained together; without alphas, itself alone.

    The small ones start from the leading heads and hidden units of the large one, as adjoined ones do.
    """

    alphas = ()

    def build(self, name):
        import reference_models as models

        large = models.golden_fill(models.build(name))
        small = [models.inherit(models.build(name, alpha), large) for alpha in self.alphas]
        return self.torch.nn.ModuleList([large, *small])

    def step(self):
        torch = self.torch
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            large, *small = [network(self.input) for network in self.model]
            loss = torch.nn.functional.cross_entropy(large, self.targets)
            for logits in small:
                loss = loss + self.divergence(large, logits)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def divergence(self, large, small):
        """KL(p || q), the mean over the batch."""
        log_p, log_q = (logits.log_softmax(-1) for logits in (large, small))
        return (log_p.exp() * (log_p - log_q)).sum(-1).mean()

    def widths(self):
        """Per small network the heads and the hidden units of its blocks."""
        from reference_models import Block, SwinBlock

        found = []
        for network in self.model[1:]:
            blocks = [m for m in network.modules() if isinstance(m, (Block, SwinBlock))]
            heads = [block.attn.heads for block in blocks]
            found.append((heads, [block.mlp.fc1.out_features for block in blocks]))
        return found


def load_both(row, worker, python, device):
    """Load a row on both sides, exit unless they compute the same; return the worker's answer."""
    name, batch, alphas = row
    classes, size = (10, 32) if name.endswith("_32") else (1000, 224)
    # T2T's token layers drop a tenth at random: the losses then differ by some 2e-3 from seed to seed.
    exact = 1e-2 if name.startswith("t2t") else 1e-3
    tolerance = 5e-2 if device == "cuda" else exact
    answer = worker.load(name, batch, alphas, device)
    losses = answer["losses"]
    python.alphas = ()
    alone = python.load(name, batch, classes, size)
    check_losses(f"{name}, large", {"adjoin": losses["large"], "python": alone}, tolerance)
    python.alphas = alphas
    # Only the first: after it the dense networks go their own ways.
    together = python.load(name, batch, classes, size)[:1]
    check_losses(f"{name}, adjoined", {"adjoin": losses["adjoined"][:1], "python": together}, tolerance)
    theirs = [(small["heads"], small["hidden"]) for small in answer["small"]]
    if theirs != python.widths():
        sys.exit(f"{name}, alphas {joined(alphas)}: the sides differ in heads or hidden units")
    answer["python_losses"] = {"large": alone, "two_dense": together}
    return answer


def compare(args, worker):
    python = DenseSide(args.threads, args.device)
    sides = {what: Steps(worker, what) for what in STEP_KINDS}
    sides["two_dense"] = python
    width = max(len(name) for name, _, _ in args.rows)
    gpu = args.device == "cuda"
    rates = "  adjoined img/s  two dense img/s" if gpu else ""
    print(
        f"{'model':{width}}  alphas  batch  MAC ratio  large ms  adjoined ms  ratio  ideal  allowed  "
        f"extra/ideal extra  two dense ms  two dense/adjoined{rates}"
    )
    rows = []
    for name, batch, alphas in args.rows:
        answer = load_both((name, batch, alphas), worker, python, args.device)
        ms = measure(sides, args.rounds, args.repeats)
        python.model = python.optimizer = None
        macs = sum(small["macs"] for small in answer["small"]) / answer["large_macs"]
        ratio = ms["adjoined"] / ms["large"]
        row = {"model": name, "alphas": alphas, "batch": batch, "mac_ratio": macs}
        row.update({f"{key}_ms": value for key, value in ms.items()})
        row.update({"ratio": ratio, "ideal": 1 + macs, "allowed": 1 + args.allowed_extra * macs})
        row.update({"extra": (ratio - 1) / macs, "speedup": ms["two_dense"] / ms["adjoined"]})
        row.update({f"{key}_images_per_second": 1e3 * batch / value for key, value in ms.items()})
        row.update({"losses": answer["losses"], "python_losses": answer["python_losses"]})
        row["small"] = answer["small"]
        rows.append(row)
        line = (
            f"{name:{width}}  {joined(alphas):>6}  {batch:5}  {macs:9.4f}  {ms['large']:8.2f}  "
            f"{ms['adjoined']:11.2f}  {ratio:5.3f}  {row['ideal']:5.3f}  {row['allowed']:7.3f}  "
            f"{row['extra']:17.3f}  {ms['two_dense']:12.2f}  {row['speedup']:18.3f}"
        )
        if gpu:
            rates = [row[f"{key}_images_per_second"] for key in ("adjoined", "two_dense")]
            line += f"  {rates[0]:14,.1f}  {rates[1]:15,.1f}"
        print(line, flush=True)
    return rows


def joined(alphas):
    return "+".join(str(alpha) for alpha in alphas)


def parse_row(text):
    """MODEL:BATCH:ALPHAS, the alphas joined by +."""
    try:
        name, batch, alphas = text.split(":")
        return name, positive(batch), [positive(alpha) for alpha in alphas.split("+")]
    except ValueError:
        sys.exit(f"{text!r} is not MODEL:BATCH:ALPHAS, as in vit_mini_32:128:2+4")


def check_extra(rows, most):
    """Exit unless every row's extra is at most `most`."""
    misses = [row for row in rows if not row["extra"] <= most]
    for row in misses:
        print(
            f"{row['model']} alphas {joined(row['alphas'])}: extra {row['extra']:.3f} is "
            f"{row['extra'] - most:.3f} above {most:g}; a step takes {row['ratio']:.3f} of a large one, "
            f"{row['ratio'] - row['allowed']:.3f} above {row['allowed']:.3f}"
        )
    if misses:
        sys.exit(f"extra above {most:g} in {len(misses)} of {len(rows)} rows")


def highest_extra(rows):
    worst = max(row["extra"] for row in rows)
    return f"highest extra/ideal extra {worst:.3f} (1 is time in proportion to MACs)"


def main():
    parser = step_arguments(
        "Time adjoined training steps beside separate networks.",
        "model:batch:alphas, comma-separated; alphas joined by +",
    )
    parser.add_argument("--require-extra", type=float, help="fail when a row's extra is above this")
    args = parse_steps(parser, CPU_ROWS, GPU_ROWS)
    args.rows = [parse_row(item) for item in args.rows.split(",")]
    args.allowed_extra = ALLOWED_EXTRA if args.require_extra is None else args.require_extra
    rows = run_bench(args, AdjoinedWorker, compare, highest_extra)
    if args.require_extra is not None:
        check_extra(rows, args.require_extra)


if __name__ == "__main__":
    main()
