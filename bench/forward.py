#!/usr/bin/env python3
"""Time Python PyTorch against a C++ worker, interleaved in one run, on the same weights and images.

The worker is a program that reads one JSON object per line and answers each, except quit, with one:
  {"op": "load", "model": NAME, "batch": B, "threads": T}
      -> {"logits": [[first 8 logits] per image], "torch": VERSION, "threads": T}
  {"op": "run", "mode": "forward" | "train"}  -> {"ms": MILLISECONDS}
  {"op": "quit"}
Any answer may be {"error": TEXT} instead. Both sides fill weights and input by the golden rule, in
float32. forward is an eval pass without gradients; train is a training pass with cross entropy
against labels i % 1000 and backward, the gradients having been dropped before the clock starts.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

MODELS = "deit_tiny_patch16_224,swin_tiny_patch4_window7_224,t2t_vit_14"
MODES = ("forward", "train")
WARMUP = 3
TOLERANCE = 1e-4


class PythonSide:
    def __init__(self, threads):
        import reference_models
        import torch

        torch.set_num_threads(threads)
        self.torch, self.models = torch, reference_models
        self.version = torch.__version__
        self.model = None

    def load(self, name, batch):
        self.model = None
        self.model = self.models.golden_fill(self.models.build(name)).eval()
        self.input = self.models.golden_input((batch, 3, 224, 224))
        self.labels = self.torch.arange(batch) % 1000
        with self.torch.no_grad():
            return self.model(self.input)[:, :8].tolist()

    def run(self, mode):
        self.model.train(mode == "train")
        self.model.zero_grad(set_to_none=True)
        start = time.perf_counter()
        if mode == "forward":
            with self.torch.no_grad():
                self.model(self.input)
        else:
            logits = self.model(self.input)
            self.torch.nn.functional.cross_entropy(logits, self.labels).backward()
        return (time.perf_counter() - start) * 1e3


class Worker:
    def __init__(self, path, threads):
        env = {k: v for k, v in os.environ.items() if k != "OMP_NUM_THREADS"}
        self.path, self.threads, self.version = path, threads, "unknown"
        try:
            self.process = subprocess.Popen(
                [os.path.abspath(path)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                bufsize=1,
                env=env,
            )
        except OSError as e:
            sys.exit(f"cannot start the worker {path}: {e.strerror}")

    def ask(self, key, **request):
        """Send one request; return the answer, which must hold `key`."""
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            code = self.process.wait()
            sys.exit(f"the worker ended with status {code} instead of answering {request}")
        try:
            answer = json.loads(line)
        except json.JSONDecodeError:
            answer = None
        if isinstance(answer, dict) and "error" in answer:
            sys.exit(f"the worker reports: {answer['error']}")
        if not isinstance(answer, dict) or key not in answer:
            sys.exit(f"the worker's answer to {request} has no {key!r}: {line.strip()[:200]}")
        return answer

    def load(self, name, batch):
        answer = self.ask("logits", op="load", model=name, batch=batch, threads=self.threads)
        if answer.get("threads") != self.threads:
            used = answer.get("threads")
            sys.exit(f"the worker was asked to use {self.threads} threads and uses {used}")
        self.version = answer.get("torch", "unknown")
        return answer["logits"]

    def run(self, mode):
        return self.ask("ms", op="run", mode=mode)["ms"]

    def stop(self):
        """Ask it to quit; end it if it does not."""
        try:
            self.process.stdin.write('{"op": "quit"}\n')
            self.process.stdin.close()
            self.process.wait(timeout=10)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()


def check_logits(name, ours, theirs):
    """Exit unless both sides computed the same thing; return the largest difference."""
    if [len(row) for row in ours] != [len(row) for row in theirs]:
        sys.exit(f"{name}: the worker's logits do not have the shape {len(ours)} x {len(ours[0])}")
    gaps = [abs(a - b) for p, q in zip(ours, theirs) for a, b in zip(p, q)]
    worst = max(gaps, key=lambda gap: (gap != gap, gap))  # NaN counts as the largest
    if not worst <= TOLERANCE:
        sys.exit(
            f"{name}: the two sides compute different logits "
            f"(largest difference {worst:.3g}, allowed {TOLERANCE:g}); not timing them"
        )
    return worst


def measure(sides, mode, rounds):
    """Alternate the sides, swapping who goes first every round; return each one's times in ms."""
    times = [[] for _ in sides]
    for i in range(WARMUP + rounds):
        order = range(len(sides)) if i % 2 == 0 else reversed(range(len(sides)))
        for j in order:
            ms = sides[j].run(mode)
            if i >= WARMUP:
                times[j].append(ms)
    return times


def cpu_model():
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def parse_args():
    parser = argparse.ArgumentParser(description="Time Python PyTorch against a C++ worker.")
    parser.add_argument("--worker", required=True, help="the worker program")
    parser.add_argument("--batch", type=positive, default=8)
    parser.add_argument("--rounds", type=positive, default=15)
    cpus = len(os.sched_getaffinity(0))
    parser.add_argument("--threads", type=positive, default=cpus, help="default: CPUs allowed here")
    parser.add_argument("--models", default=MODELS, help="comma-separated; default: %(default)s")
    parser.add_argument("--json", metavar="FILE", help="write rows and machine facts here")
    parser.add_argument("--require", type=float, help="fail when a row's ratio is below this")
    return parser.parse_args()


def compare(args, python, worker):
    names = args.models.split(",")
    unknown = [name for name in names if name not in python.models.MODELS]
    if unknown:
        sys.exit(f"unknown model {unknown[0]}; known: {', '.join(python.models.MODELS)}")
    width = max(len(name) for name in names + ["model"])
    print(f"{'model':{width}}  {'mode':7}  {'python ms':>9}  {'adjoin ms':>9}  {'ratio':>6}")
    rows = []
    for name in names:
        gap = check_logits(name, python.load(name, args.batch), worker.load(name, args.batch))
        for mode in MODES:
            ours, theirs = measure((python, worker), mode, args.rounds)
            a, b = statistics.median(ours), statistics.median(theirs)
            rows.append(
                {
                    "model": name,
                    "mode": mode,
                    "python_ms": a,
                    "adjoin_ms": b,
                    "ratio": a / b,
                    "logit_difference": gap,
                    "python_times_ms": ours,
                    "adjoin_times_ms": theirs,
                }
            )
            print(f"{name:{width}}  {mode:7}  {a:9.2f}  {b:9.2f}  {a / b:6.3f}", flush=True)
    return rows


def main():
    args = parse_args()
    if os.environ.get("OMP_WAIT_POLICY", "").lower() != "passive":
        # Threads that spin while idle would steal time from the other side. OpenMP reads this
        # once, when torch is loaded, so start over with it set.
        os.environ["OMP_WAIT_POLICY"] = "passive"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    python = PythonSide(args.threads)
    worker = Worker(args.worker, args.threads)
    try:
        print(f"{cpu_model()}, {args.threads} threads, batch {args.batch}, {args.rounds} rounds")
        rows = compare(args, python, worker)
    finally:
        worker.stop()
    lowest = min(row["ratio"] for row in rows)
    print(f"python torch {python.version}, worker torch {worker.version}")
    print(f"lowest ratio {lowest:.3f} (python / adjoin; above 1 adjoin is faster)")
    if args.json:
        facts = {
            "cpu": cpu_model(),
            "threads": args.threads,
            "batch": args.batch,
            "rounds": args.rounds,
            "python_torch": python.version,
            "adjoin_torch": worker.version,
            "omp_wait_policy": os.environ["OMP_WAIT_POLICY"],
        }
        report = {"machine": facts, "lowest_ratio": lowest, "rows": rows}
        Path(args.json).write_text(json.dumps(report, indent=2) + "\n")
    if args.require is not None and lowest < args.require:
        low = [f"{r['model']} {r['mode']}" for r in rows if r["ratio"] < args.require]
        sys.exit(f"ratio below {args.require:g}: {', '.join(low)}")


if __name__ == "__main__":
    main()
