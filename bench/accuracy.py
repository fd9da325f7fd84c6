#!/usr/bin/env python3
"""Train the networks of the adjoined comparison side by side on one GPU, and print the table.

  alone      the large network, and small ones of the same shape as those inside it, each trained by itself
  adjoined   a large network with small ones in its weights
  searched   a large network with one in its weights whose blocks a search chose, at 0.45 of the MACs: by dan, by trying
             networks at random in about the same time, or all blocks alike; bayes: a network that a large one teaches

A row is one training, for one seed or several. What differs between two rows is paired by seed: the mean
difference, and the 95 % interval of Student's t. The first seed of every row comes before the second of any. With --json
results are written as they come, and what the file already has is not trained again; `accuracy.py FILE.json ..` prints
the table of several such files.

  nvidia-cuda-mps-control -d        # lets the kernels of several processes run at once
  bench/accuracy.py --adjoin build/cuda/bin/adjoin --data folder:DIR --epochs 40 --jobs 6 --json accuracy.json
"""

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path


def small(heads, head_dim, mlp_ratio):
    """The shape of a small network that is trained alone."""
    return f"--set model.heads={heads} --set model.head_dim={head_dim} --set model.mlp_ratio={mlp_ratio}"


BAYES = "search --config recipes/bayes_vit_mini_32.yaml --search-epochs {tenth}"

# Name, seeds, command; every training has as many epochs, a search half as many, a trial a twentieth or a tenth. The rows
# that take longest come first.
ROWS = [
    ("bayes-0.45", 2, BAYES),
    ("bayes-random-0.45", 2, BAYES + " --proposer random"),
    ("random-0.45", 1, "search --config recipes/dan_vit_mini_32.yaml --method random --trials 10 --search-epochs {twentieth}"),
    ("dan-0.45", 3, "search --config recipes/dan_vit_mini_32.yaml --search-epochs {half}"),
    ("uniform-0.45", 3, "search --config recipes/dan_vit_mini_32.yaml --method uniform"),
    ("swin-dan-0.45", 1, "search --config recipes/dan_swin_mini_32.yaml --search-epochs {half}"),
    ("set-2-4-8", 3, "compress --config recipes/adjoined_vit_mini_32.yaml --alpha 2,4,8"),
    ("adjoined-4", 3, "compress --config recipes/adjoined_vit_mini_32.yaml"),
    ("detached-4", 1, "compress --config recipes/adjoined_vit_mini_32.yaml --detach-teacher"),
    ("swin-adjoined-4", 1, "compress --config recipes/adjoined_swin_mini_32.yaml"),
    ("t2t-adjoined-4", 1, "compress --config recipes/adjoined_t2t_mini_32.yaml"),
    ("swin-large", 1, "train --config recipes/swin_mini_32.yaml"),
    ("t2t-large", 1, "train --config recipes/t2t_mini_32.yaml"),
    ("swin-small-4", 1, "train --config recipes/swin_mini_32.yaml " + small("1,2", 16, 0.5)),
    ("t2t-small-4", 1, "train --config recipes/t2t_mini_32.yaml " + small(2, 16, 0.5)),
    ("large", 3, "train --config recipes/vit_mini_32.yaml"),
    ("small-2", 1, "train --config recipes/vit_mini_32.yaml " + small(4, 32, 1)),
    ("small-4", 3, "train --config recipes/vit_mini_32.yaml " + small(2, 32, 0.5)),
    ("small-8", 1, "train --config recipes/vit_mini_32.yaml " + small(1, 32, 0.25)),
]
# A network of one row beside a network of another.
PAIRS = [
    (("adjoined-4", "small-4"), ("small-4", "small-4")),
    (("adjoined-4", "small-4"), ("large", "large")),
    (("adjoined-4", "large"), ("large", "large")),
    (("set-2-4-8", "small-2"), ("small-2", "small-2")),
    (("set-2-4-8", "small-4"), ("small-4", "small-4")),
    (("set-2-4-8", "small-8"), ("small-8", "small-8")),
    (("set-2-4-8", "large"), ("large", "large")),
    (("detached-4", "small-4"), ("adjoined-4", "small-4")),
    (("dan-0.45", "small"), ("large", "large")),
    (("dan-0.45", "small"), ("uniform-0.45", "small")),
    (("dan-0.45", "small"), ("random-0.45", "small")),
    (("bayes-0.45", "small"), ("bayes-random-0.45", "small")),
    (("bayes-0.45", "small"), ("dan-0.45", "small")),
    (("bayes-0.45", "small"), ("uniform-0.45", "small")),
    (("swin-dan-0.45", "small"), ("swin-large", "large")),
    (("swin-adjoined-4", "small-4"), ("swin-small-4", "small-4")),
    (("swin-adjoined-4", "large"), ("swin-large", "large")),
    (("t2t-adjoined-4", "small-4"), ("t2t-small-4", "small-4")),
    (("t2t-adjoined-4", "large"), ("t2t-large", "large")),
]
# Student's t at 97.5 %, by degrees of freedom.
STUDENT = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306, 9: 2.262}


def networks_of(row, result):
    """Top-1 of every network of a run."""
    if "large" in result:
        found = {"large": result["large"]["top1"]}
        if isinstance(result["small"], dict):  # of a search
            return {**found, "small": result["small"]["top1"]}
        found.update({f"small-{small['alpha']}": small["top1"] for small in result["small"]})
        return found
    name = row.split("-", 1)[1] if row.split("-")[0] in ("swin", "t2t") else row
    return {name: result["top1"]}


def train(row, seed, command, args):
    parts = {"half": 2, "tenth": 10, "twentieth": 20}
    command = command.format(**{name: max(args.epochs // part, 1) for name, part in parts.items()})
    words = [args.adjoin, *shlex.split(command), "--data", args.data, "--seed", str(seed)]
    words += ["--epochs", str(args.epochs)]
    words += shlex.split(args.options)
    output = Path(args.output) / row / str(seed)
    began = time.time()
    done = subprocess.run(
        [*words, "--output", output, "--json", "--progress", "silent"], capture_output=True, text=True
    )
    if done.returncode != 0:
        print(f"{row}, seed {seed}: exit {done.returncode}: {done.stderr.strip()}", flush=True)
        return None
    result = json.loads(done.stdout)
    found = {
        "row": row,
        "seed": seed,
        "top1": networks_of(row, result),
        "seconds": round(time.time() - began, 1),
        "command": shlex.join(["adjoin", *words[1:]]),
    }
    shown = ", ".join(f"{name} {value:.2f}" for name, value in found["top1"].items())
    print(f"{row}, seed {seed}: {shown}  ({found['seconds']:.0f} s)", flush=True)
    return found


def run_rows(rows, args):
    """All results, and what failed in words."""
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    results = runs_of(args.json) if args.json and Path(args.json).exists() else []
    known = {(run["row"], run["seed"]) for run in results}
    jobs = [
        (name, seed, command) for seed in range(args.seeds) for name, seeds, command in rows if seed < seeds
    ]
    jobs = [job for job in jobs if job[:2] not in known]
    failed = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        for future in as_completed([pool.submit(train, *job, args) for job in jobs]):
            if not (found := future.result()):
                failed += 1
                continue
            results.append(found)
            if args.json:
                Path(args.json).write_text(json.dumps({"runs": results}, indent=1) + "\n")
    return results, f"{failed} of {len(jobs)} trainings failed" if failed else ""


def runs_of(file):
    return json.loads(Path(file).read_text())["runs"]


def by_network(results):
    """{(row, network): {seed: top1}}"""
    found = {}
    for run in results:
        for network, top1 in run["top1"].items():
            found.setdefault((run["row"], network), {})[run["seed"]] = top1
    return found


def mean(values):
    return sum(values) / len(values)


def half_width(values):
    """Half of the 95 % interval of a mean; None for one value."""
    if len(values) < 2:
        return None
    centre = mean(values)
    deviation = math.sqrt(sum((v - centre) ** 2 for v in values) / (len(values) - 1))
    return STUDENT[len(values) - 1] * deviation / math.sqrt(len(values))


def print_tables(results):
    found = by_network(results)
    print(f"\n{'row':16}  {'network':8}  seeds   top1  each")
    for (row, network), tops in sorted(found.items()):
        each = " ".join(f"{tops[seed]:.2f}" for seed in sorted(tops))
        print(f"{row:16}  {network:8}  {len(tops):5}  {mean(tops.values()):5.2f}  {each}")
    print(f"\n{'difference':56}  seeds    mean  95 % interval")
    for one, other in PAIRS:
        if one not in found or other not in found:
            continue
        seeds = sorted(set(found[one]) & set(found[other]))
        if not seeds:
            continue
        differences = [found[one][seed] - found[other][seed] for seed in seeds]
        width = half_width(differences)
        centre = mean(differences)
        interval = "" if width is None else f"{centre - width:+.2f} to {centre + width:+.2f}"
        what = f"{one[1]} of {one[0]} - {other[1]} of {other[0]}"
        print(f"{what:56}  {len(seeds):5}  {centre:+6.2f}  {interval}")


def chosen_rows(text):
    """The rows that "a,b:1" names, those with a number with so many seeds at most; all where it names none."""
    if not text:
        return ROWS
    wanted = {name: seeds for name, _, seeds in (word.partition(":") for word in text.split(","))}
    known = [name for name, _, _ in ROWS]
    if unknown := sorted(set(wanted) - set(known)):
        sys.exit(f"no such row: {', '.join(unknown)}; there are {', '.join(known)}")
    if wrong := sorted(f"{name}:{seeds}" for name, seeds in wanted.items() if seeds and not seeds.isdecimal()):
        sys.exit(f"not a number of seeds: {', '.join(wrong)}")
    return [
        (name, min(seeds, int(wanted[name] or seeds)), command) for name, seeds, command in ROWS if name in wanted
    ]


def main():
    parser = argparse.ArgumentParser(description="Accuracy of adjoined networks beside those trained alone.")
    parser.add_argument("files", nargs="*", help="results of earlier goes: print their table, train nothing")
    parser.add_argument("--adjoin", help="the program")
    parser.add_argument("--data", help="as for adjoin train")
    parser.add_argument("--rows", help="comma-separated names, NAME:N for at most N seeds; default all")
    parser.add_argument("--seeds", type=int, default=3, help="at most so many seeds")
    parser.add_argument("--jobs", type=int, default=4, help="trainings at a time")
    parser.add_argument("--epochs", type=int, default=100, help="of every training")
    parser.add_argument("--options", default="", help="for every training: --options='--drop-path 0'")
    parser.add_argument("--output", default="runs/accuracy", help="folder of the run folders")
    parser.add_argument("--json", help="write results here, and go on where it stops")
    args = parser.parse_args()
    if args.files:
        print_tables([run for file in args.files for run in runs_of(file)])
        return
    if not args.adjoin or not args.data:
        parser.error("--adjoin and --data are needed to train")
    results, failure = run_rows(chosen_rows(args.rows), args)
    print_tables(results)
    if failure:
        sys.exit(failure)


if __name__ == "__main__":
    main()
