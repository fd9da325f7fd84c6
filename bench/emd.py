#!/usr/bin/env python3
"""Seconds that `adjoin emd` takes for two clouds of points in the plane, beside POT.

  adjoin    the program on one core: it starts, reads both files, solves, and writes plan and proof
  pot       ot.emd2 of Python Optimal Transport on one thread, given the masses and the matrix of costs; reading files
            and making the matrix do not count

Both take turns on the same core; numbers are medians. The distances must agree to 1e-9.
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

AGREEMENT = 1e-9


def write_masses(path, masses, points):
    rows = (",".join(repr(float(value)) for value in (mass, *point)) for mass, point in zip(masses, points))
    path.write_text("\n".join(rows) + "\n")


def run_adjoin(args, files):
    """(seconds, distance)"""
    began = time.perf_counter()
    done = subprocess.run(
        ["taskset", "-c", str(args.core), args.adjoin, "emd", *files, "--json"], check=True, capture_output=True
    )
    seconds = time.perf_counter() - began
    return seconds, json.loads(done.stdout)["distance"]


def run_pot(ot, masses, costs):
    """(seconds, distance)"""
    began = time.perf_counter()
    distance = ot.emd2(*masses, costs, numItermax=100_000_000, numThreads=1)
    return time.perf_counter() - began, float(distance)


def main():
    parser = argparse.ArgumentParser(description="Seconds for an earth mover's distance.")
    parser.add_argument("--adjoin", default="build/release/bin/adjoin", help="the program")
    parser.add_argument("--points", type=int, default=1000, help="on either side")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--core", type=int, default=0, help="where both run")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", help="write results here")
    args = parser.parse_args()
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.sched_setaffinity(0, {args.core})
    import numpy
    import ot

    random = numpy.random.default_rng(args.seed)
    masses = [numpy.full(args.points, 1 / args.points) for _ in range(2)]
    points = [random.random((args.points, 2)) for _ in range(2)]
    costs = numpy.sqrt(((points[0][:, None] - points[1][None]) ** 2).sum(-1))
    seconds = {"adjoin": [], "pot": []}
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("from.csv", "to.csv")]
        for path, mass, cloud in zip(files, masses, points):
            write_masses(path, mass, cloud)
        for _ in range(args.rounds):
            took, ours = run_adjoin(args, files)
            seconds["adjoin"].append(took)
            took, theirs = run_pot(ot, masses, costs)
            seconds["pot"].append(took)
            if abs(ours - theirs) > AGREEMENT * theirs:
                sys.exit(f"the distances differ: adjoin {ours!r}, pot {theirs!r}")
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, median in medians.items():
        print(f"{name:8}{median:8.3f} s   {args.points} x {args.points} points, {min(seconds[name]):.3f} s at best")
    difference = abs(ours - theirs) / theirs
    print(f"distance {ours!r}, as pot's to {difference:.1e}; must be {AGREEMENT:g}")
    if args.json:
        report = {"points": args.points, "pot": ot.__version__, "seconds": medians, "difference": difference}
        Path(args.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
