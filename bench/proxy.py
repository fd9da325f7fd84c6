#!/usr/bin/env python3
"""Architectures per second that `adjoin rank` scores by grad_norm and snip, beside Python torch.

  adjoin 1, adjoin 2    the program with one architecture at a time, and with two, each on a core of its own; starting
                        the program counts
  python                the same networks on one thread, written as AutoFormer writes them; the two proxies share one
                        forward and backward pass, and making the networks does not count

All three take turns; numbers are medians. Then resident memory while many architectures are
scored, on two images each.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))


def rank(args, threads, count, batch_size, *more):
    return [
        *(args.adjoin, "rank", "--space", args.space, "--sample", str(count), "--batch-size", str(batch_size)),
        *("--proxies", "grad_norm,snip", "--threads", str(threads), *more),
    ]


def seconds_of_adjoin(args, threads):
    began = time.perf_counter()
    subprocess.run(rank(args, threads, args.count, args.batch_size), check=True, capture_output=True)
    return time.perf_counter() - began


class Python:
    """The networks that adjoin scores, with their start values and batches."""

    def __init__(self, args):
        import check_proxies

        self.proxies = check_proxies
        self.networks = []
        with tempfile.TemporaryDirectory() as folder:
            command = rank(args, 1, args.count, args.batch_size, "--write-inputs", folder, "--json")
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            self.wanted = json.loads(done.stdout)["scores"]
            for i in range(args.count):
                weights, metadata = check_proxies.read_safetensors(f"{folder}/{i}.safetensors")
                batch, _ = check_proxies.read_safetensors(f"{folder}/{i}.batch.safetensors")
                self.networks.append((check_proxies.Network(json.loads(metadata["adjoin.spec"])), weights, batch))

    def check(self):
        for (network, weights, batch), wanted in zip(self.networks, self.wanted):
            found = self.proxies.loss_scores(network, weights, batch["images"], batch["labels"])
            for name, value in found.items():
                if abs(value / wanted[name] - 1) > 1e-4:
                    sys.exit(f"{wanted['name']}: {name} is {value}, adjoin says {wanted[name]}")

    def seconds(self):
        began = time.perf_counter()
        for network, weights, batch in self.networks:
            self.proxies.loss_scores(network, weights, batch["images"], batch["labels"])
        return time.perf_counter() - began


def resident(pid):
    """MiB, or None once the process is gone."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return None


def memory(args):
    """[(architectures done, MiB)] while many are scored."""
    with tempfile.TemporaryDirectory() as folder:
        command = rank(args, os.cpu_count(), args.memory, 2, "--output", f"{folder}/run")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        scores = Path(folder) / "run" / "scores.jsonl"
        seen = []
        while process.poll() is None:
            time.sleep(0.5)
            mib = resident(process.pid)
            if mib is not None and scores.exists():
                seen.append((len(scores.read_text().splitlines()), mib))
        if process.returncode != 0:
            sys.exit(f"adjoin rank: exit {process.returncode}")
    return seen


def main():
    parser = argparse.ArgumentParser(description="Architectures scored per second.")
    parser.add_argument("--adjoin", default="build/release/bin/adjoin", help="the program")
    parser.add_argument("--space", default="autoformer-tiny", help="as for adjoin rank")
    parser.add_argument("--count", type=int, default=12, help="architectures in a turn")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", type=int, default=500, help="architectures of the last part; 0: leave it out")
    parser.add_argument("--json", help="write results here")
    args = parser.parse_args()
    os.environ["OMP_WAIT_POLICY"] = "passive"
    import torch

    torch.set_num_threads(1)
    python = Python(args)
    python.check()
    sides = {
        "adjoin 1": lambda: seconds_of_adjoin(args, 1),
        "adjoin 2": lambda: seconds_of_adjoin(args, 2),
        "python": python.seconds,
    }
    seconds = {name: [] for name in sides}
    for _ in range(args.rounds):
        for name, run in sides.items():
            seconds[name].append(run())
    rates = {name: args.count / statistics.median(values) for name, values in seconds.items()}
    for name, rate in rates.items():
        print(f"{name:10}  {rate:6.2f} architectures/s", flush=True)
    print(f"one thread beside python {rates['adjoin 1'] / rates['python']:.2f}x")
    print(f"two cores beside one {rates['adjoin 2'] / rates['adjoin 1']:.2f}x")
    report = {"space": args.space, "batch_size": args.batch_size, "torch": torch.__version__, "rates": rates}
    if args.memory:
        seen = memory(args)
        tenth = [mib for done, mib in seen if done <= args.memory // 5 and done > args.memory // 10]
        last = [mib for done, mib in seen if done > args.memory * 9 // 10]
        report["resident_mib"] = {"second_tenth": statistics.median(tenth), "last_tenth": statistics.median(last)}
        print(
            f"resident {statistics.median(tenth):.0f} MiB in the second tenth of {args.memory}, "
            f"{statistics.median(last):.0f} MiB in the last, at most {max(mib for _, mib in seen):.0f} MiB"
        )
    if args.json:
        Path(args.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
