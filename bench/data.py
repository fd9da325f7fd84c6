#!/usr/bin/env python3
"""Time the training transform against torchvision and PIL, on one core each, interleaved.

Both sides have the same JPEG files in memory. An image is decoded, a random-resized-crop of 224 x 224
taken and flipped by chance; it ends as 8-bit RGB or, where the row says so, as a normalised float32
tensor. The torchvision side opens images as its ImageFolder does. The worker is a program that reads
one JSON object per line and answers each, except quit, with one:
  {"op": "load", "files": [PATH, ..]}  -> {"images": N, "torch": VERSION}
  {"op": "crop", "image": I, "box": [LEFT, TOP, WIDTH, HEIGHT], "interpolation": NAME, "out": PATH}
      -> {"bytes": N}, the pixels of that crop being in the file
  {"op": "run", "interpolation": NAME, "normalize": BOOL, "round": N}  -> {"ms": MILLISECONDS}
  {"op": "quit"}
Any answer may be {"error": TEXT} instead.
"""

import argparse
import io
import json
import random
import statistics
import sys
import tarfile
import tempfile
import time
from pathlib import Path

from forward import Worker, cpu_model, positive

ROWS = [("bilinear", False), ("bicubic", False), ("bilinear", True), ("bicubic", True)]
SAMPLE = Path(__file__).resolve().parents[2] / "shared" / "data" / "imagenet-sample-125.tar"
SIZE = 224
WARMUP = 1
TOLERANCE = 0.05  # mean difference in grey levels with the same box


class PythonSide:
    def __init__(self, files):
        import torch
        import torchvision
        from PIL import Image
        from torchvision import transforms

        torch.set_num_threads(1)
        torch.manual_seed(0)
        self.image, self.transforms = Image, transforms
        self.version = f"torchvision {torchvision.__version__}"
        self.files = files

    def open(self, index):
        return self.image.open(io.BytesIO(self.files[index])).convert("RGB")

    def mode(self, name):
        return self.transforms.InterpolationMode[name.upper()]

    def crop(self, index, box, interpolation):
        left, top, width, height = box
        return self.transforms.functional.resized_crop(
            self.open(index), top, left, height, width, [SIZE, SIZE], self.mode(interpolation)
        )

    def run(self, interpolation, normalize, _):
        steps = [
            self.transforms.RandomResizedCrop(SIZE, interpolation=self.mode(interpolation)),
            self.transforms.RandomHorizontalFlip(),
        ]
        if normalize:
            steps.append(self.transforms.ToTensor())
            steps.append(self.transforms.Normalize((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
        transform = self.transforms.Compose(steps)
        start = time.perf_counter()
        for index in range(len(self.files)):
            transform(self.open(index))
        return (time.perf_counter() - start) * 1e3


class AdjoinSide:
    def __init__(self, worker, paths):
        self.worker = worker
        answer = worker.ask("images", op="load", files=[str(path) for path in paths])
        if answer["images"] != len(paths):
            sys.exit(f"the worker loaded {answer['images']} of {len(paths)} images")

    def run(self, interpolation, normalize, round_number):
        request = {"interpolation": interpolation, "normalize": normalize, "round": round_number}
        return self.worker.ask("ms", op="run", **request)["ms"]


def check_pixels(python, adjoin, folder):
    """Exit unless both sides make the same pixels of the same boxes; the mean difference."""
    noise = random.Random(1)
    total = count = 0
    out = folder / "crop.rgb"
    for index in range(len(python.files)):
        width, height = python.open(index).size
        w, h = noise.randint(width // 3, width), noise.randint(height // 3, height)
        box = [noise.randint(0, width - w), noise.randint(0, height - h), w, h]
        name = ("bilinear", "bicubic")[index % 2]
        adjoin.worker.ask("bytes", op="crop", image=index, box=box, interpolation=name, out=str(out))
        ours, theirs = out.read_bytes(), python.crop(index, box, name).tobytes()
        if len(ours) != len(theirs):
            sys.exit(f"image {index}: the worker's crop has {len(ours)} bytes, not {len(theirs)}")
        total += sum(abs(a - b) for a, b in zip(ours, theirs))
        count += len(ours)
    if total / count > TOLERANCE:
        sys.exit(f"the two sides' pixels differ by {total / count:.3g} on average; not timing them")
    return total / count


def measure(sides, row, rounds):
    """Alternate the sides, swapping who goes first every round; each one's times in ms."""
    times = [[], []]
    for i in range(rounds + WARMUP):
        for j in (0, 1) if i % 2 == 0 else (1, 0):
            ms = sides[j].run(*row, i)
            if i >= WARMUP:
                times[j].append(ms)
    return times


def parse_args():
    parser = argparse.ArgumentParser(description="Time the training transform against torchvision.")
    parser.add_argument("--worker", required=True, help="the worker program")
    parser.add_argument("--images", type=Path, default=SAMPLE, help="a tar of JPEGs; default: %(default)s")
    parser.add_argument("--rounds", type=positive, default=9)
    parser.add_argument("--json", metavar="FILE", help="write rows and machine facts here")
    parser.add_argument("--require", type=float, help="fail when a row's ratio is below this")
    return parser.parse_args()


def compare(python, adjoin, rounds):
    count = len(python.files)
    print(f"{'row':22}  {'torchvision':>11}  {'adjoin':>7}  {'ratio':>6}   (images per second)")
    rows = []
    for row in ROWS:
        theirs, ours = measure((python, adjoin), row, rounds)
        a, b = statistics.median(theirs), statistics.median(ours)
        name = row[0] + (" + normalise" if row[1] else "")
        rows.append(
            {
                "row": name,
                "torchvision_images_per_second": count * 1e3 / a,
                "adjoin_images_per_second": count * 1e3 / b,
                "ratio": a / b,
                "torchvision_times_ms": theirs,
                "adjoin_times_ms": ours,
            }
        )
        print(f"{name:22}  {count * 1e3 / a:11.0f}  {count * 1e3 / b:7.0f}  {a / b:6.2f}", flush=True)
    return rows


def run(args, folder):
    with tarfile.open(args.images) as tar:
        files = [tar.extractfile(member).read() for member in tar if member.isfile()]
    paths = [folder / f"{i}.jpg" for i in range(len(files))]
    for path, data in zip(paths, files):
        path.write_bytes(data)
    worker = Worker(args.worker, 1)
    try:
        python, adjoin = PythonSide(files), AdjoinSide(worker, paths)
        print(f"{cpu_model()}, one thread, {len(files)} images, {args.rounds} rounds")
        gap = check_pixels(python, adjoin, folder)
        print(f"same boxes: pixels differ by {gap:.4f} of 255 on average")
        return python.version, compare(python, adjoin, args.rounds)
    finally:
        worker.stop()


def main():
    args = parse_args()
    if not args.images.is_file():
        sys.exit(f"there is no {args.images}; give a tar of JPEGs with --images")
    with tempfile.TemporaryDirectory() as folder:
        version, rows = run(args, Path(folder))
    lowest = min(row["ratio"] for row in rows)
    print(f"{version}; lowest ratio {lowest:.2f} (adjoin / torchvision; above 1 adjoin is faster)")
    if args.json:
        facts = {"cpu": cpu_model(), "rounds": args.rounds, "torchvision": version}
        report = {"machine": facts, "lowest_ratio": lowest, "rows": rows}
        Path(args.json).write_text(json.dumps(report, indent=2) + "\n")
    if args.require is not None and lowest < args.require:
        low = [row["row"] for row in rows if row["ratio"] < args.require]
        sys.exit(f"ratio below {args.require:g}: {', '.join(low)}")


if __name__ == "__main__":
    main()
