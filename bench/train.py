#!/usr/bin/env python3
"""Time whole training steps of Python PyTorch against a C++ worker, interleaved in one run.

A step is forward, cross entropy against one-hot targets, backward and AdamW (lr 1e-4, weight decay
0.05 on matrices). On a CPU both sides run float32 and Python uses bench/reference_models.py; on a GPU
both run bf16 autocast and Python uses timm, eager and under torch.compile. Both sides start from the
same weights (the golden rule) and must agree on the losses of the first steps before any is timed.

The worker speaks JSON lines:
  {"op": "load", "model", "batch", "threads", "device", "dtype"} -> {"losses": [..], "torch", "threads"}
  {"op": "run", "repeats": N} -> {"ms": MILLISECONDS PER STEP}
"""

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

from forward import Worker, cpu_model, positive

CPU_ROWS = "vit_mini_32:128,deit_tiny_patch16_224:8,swin_tiny_patch4_window7_224:4"
GPU_ROWS = "deit_small_patch16_224:256,swin_base_patch4_window7_224:64,vit_mini_32:512"
CHECKED_STEPS = 3
LR = 1e-4
DECAY = 0.05


class TrainWorker(Worker):
    def load(self, name, batch, device):
        dtype = "bf16" if device == "cuda" else "float32"
        answer = self.ask(
            "losses", op="load", model=name, batch=batch, threads=self.threads, device=device, dtype=dtype
        )
        self.version = answer.get("torch", "unknown")
        return answer["losses"]

    def run(self, repeats):
        return self.ask("ms", op="run", repeats=repeats)["ms"]


def official_name(name):
    """What the authors of Swin call a parameter of timm's."""
    parts = name.split(".")
    if len(parts) > 2 and parts[2] == "downsample":
        parts[1] = str(int(parts[1]) - 1)
    return ".".join(parts).replace("head.fc.", "head.")


class PythonSide:
    """One training setup in this process; `compiled` runs it under torch.compile."""

    def __init__(self, threads, device, compiled=False):
        import torch

        torch.set_num_threads(threads)
        self.torch, self.device, self.compiled = torch, device, compiled

    def build(self, name):
        import reference_models

        if self.device == "cpu":
            return reference_models.golden_fill(reference_models.build(name))
        import timm

        if name == "vit_mini_32":
            from timm.models.vision_transformer import VisionTransformer

            model = VisionTransformer(
                img_size=32, patch_size=4, embed_dim=256, depth=8, num_heads=8, mlp_ratio=2, num_classes=10
            )
        else:
            model = timm.create_model(name)
        return reference_models.golden_fill(model, official_name if name.startswith("swin") else str)

    def load(self, name, batch, classes, size):
        import reference_models

        torch = self.torch
        self.model = self.optimizer = None
        model = self.build(name).to(self.device).train()
        decay = [p for p in model.parameters() if p.ndim > 1]
        rest = [p for p in model.parameters() if p.ndim <= 1]
        # Tokens, positions and bias tables have more than one axis and no decay.
        names = dict((id(p), n) for n, p in model.named_parameters())
        free = ("pos_embed", "cls_token", "dist_token", "relative_position_bias_table")
        rest += [p for p in decay if names[id(p)].endswith(free)]
        decay = [p for p in decay if not names[id(p)].endswith(free)]
        groups = [{"params": decay, "weight_decay": DECAY}, {"params": rest, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=LR)
        self.input = reference_models.golden_input((batch, 3, size, size)).to(self.device)
        labels = torch.arange(batch) % classes
        self.targets = torch.nn.functional.one_hot(labels, classes).float().to(self.device)
        self.model = torch.compile(model) if self.compiled else model
        return [self.step().item() for _ in range(CHECKED_STEPS)]

    def step(self):
        torch = self.torch
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast(self.device, torch.bfloat16, enabled=self.device == "cuda"):
            logits = self.model(self.input)
            loss = torch.nn.functional.cross_entropy(logits, self.targets)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def run(self, repeats):
        self.synchronize()
        start = time.perf_counter()
        for _ in range(repeats):
            self.step()
        self.synchronize()
        return (time.perf_counter() - start) * 1e3 / repeats

    def synchronize(self):
        if self.device == "cuda":
            self.torch.cuda.synchronize()


def check_losses(name, sides, tolerance):
    """Exit unless all sides computed the same first losses."""
    ours = sides["adjoin"]
    for side, losses in sides.items():
        gaps = [abs(a - b) / max(1.0, abs(a)) for a, b in zip(ours, losses)]
        if not max(gaps) <= tolerance:
            sys.exit(f"{name}: adjoin's first losses are {ours}, those of {side} {losses}; not timing them")


def measure(sides, rounds, repeats):
    times = {key: [] for key in sides}
    for i in range(rounds + 1):
        order = list(sides) if i % 2 == 0 else list(reversed(sides))
        for key in order:
            ms = sides[key].run(repeats)
            if i > 0:  # the first round warms up
                times[key].append(ms)
    return {key: statistics.median(value) for key, value in times.items()}


def compare(args, worker):
    sides = {"python": PythonSide(args.threads, args.device)}
    if args.device == "cuda":
        sides["compiled"] = PythonSide(args.threads, args.device, compiled=True)
    heads = "  ".join(f"{key + ' img/s':>15}" for key in [*sides, "adjoin"])
    print(f"{'model':28}  {'batch':>5}  {heads}  {'ratio':>6}" + ("  of compiled" if len(sides) > 1 else ""))
    rows = []
    for item in args.rows.split(","):
        name, batch = item.split(":")
        batch = int(batch)
        classes, size = (10, 32) if name.endswith("_32") else (1000, 224)
        losses = {"adjoin": worker.load(name, batch, args.device)}
        for key, side in sides.items():
            losses[key] = side.load(name, batch, classes, size)
        check_losses(name, losses, 5e-2 if args.device == "cuda" else 1e-3)
        ms = measure({**sides, "adjoin": worker}, args.rounds, args.repeats)
        row = {"model": name, "batch": batch, "losses": losses}
        row.update({f"{key}_images_per_second": 1e3 * batch / value for key, value in ms.items()})
        row["ratio"] = ms["python"] / ms["adjoin"]
        line = "  ".join(f"{1e3 * batch / ms[key]:15,.1f}" for key in [*sides, "adjoin"])
        line = f"{name:28}  {batch:5}  {line}  {row['ratio']:6.3f}"
        if "compiled" in ms:
            row["ratio_to_compiled"] = ms["compiled"] / ms["adjoin"]
            line += f"  {row['ratio_to_compiled']:11.3f}"
        print(line, flush=True)
        rows.append(row)
        for side in sides.values():
            side.model = side.optimizer = None
    return rows


def step_arguments(description, rows_help):
    """A parser of what every bench of training steps is asked."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--worker", required=True, help="the worker program")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--rows", help=rows_help)
    parser.add_argument("--rounds", type=positive, default=9)
    parser.add_argument("--repeats", type=positive, help="steps per timing; default 1, on a GPU 20")
    cpus = len(os.sched_getaffinity(0))
    parser.add_argument("--threads", type=positive, default=cpus, help="default: CPUs allowed here")
    parser.add_argument("--json", metavar="FILE", help="write rows and machine facts here")
    return parser


def parse_steps(parser, cpu_rows, gpu_rows):
    args = parser.parse_args()
    args.rows = args.rows or (gpu_rows if args.device == "cuda" else cpu_rows)
    args.repeats = args.repeats or (20 if args.device == "cuda" else 1)
    return args


def run_bench(args, worker_class, compare, verdict):
    """The rows that `compare` measures, printed with the machine and `verdict(rows)`."""
    if os.environ.get("OMP_WAIT_POLICY", "").lower() != "passive":
        # Threads that spin while idle would steal time from the other side.
        os.environ["OMP_WAIT_POLICY"] = "passive"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    worker = worker_class(args.worker, args.threads)
    try:
        print(f"{cpu_model()}, {args.threads} threads, {args.device}, {args.rounds} rounds")
        rows = compare(args, worker)
    finally:
        worker.stop()
    import torch

    machine = torch.cuda.get_device_name() if args.device == "cuda" else cpu_model()
    print(f"python torch {torch.__version__}, worker torch {worker.version}, {machine}")
    print(verdict(rows))
    if args.json:
        report = {"machine": machine, "python_torch": torch.__version__, "adjoin_torch": worker.version}
        report.update({"threads": args.threads, "rounds": args.rounds, "rows": rows})
        Path(args.json).write_text(json.dumps(report, indent=2) + "\n")
    return rows


def lowest_ratio(rows):
    lowest = min(row["ratio"] for row in rows)
    return f"lowest ratio {lowest:.3f} (python / adjoin; above 1 adjoin is faster)"


def main():
    parser = step_arguments("Time training steps beside Python PyTorch.", "model:batch, comma-separated")
    parser.add_argument("--require", type=float, help="fail when a row's ratio is below this")
    args = parse_steps(parser, CPU_ROWS, GPU_ROWS)
    rows = run_bench(args, TrainWorker, compare, lowest_ratio)
    low = [row["model"] for row in rows if args.require is not None and row["ratio"] < args.require]
    if low:
        sys.exit(f"ratio below {args.require:g}: {', '.join(low)}")


if __name__ == "__main__":
    main()
