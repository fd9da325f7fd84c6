#!/usr/bin/env python3
"""Golden values of position tables resized to another grid, as the authors' code resizes them.

  tools/interpolate_golden.py > tests/golden/interpolation.json

Both are torch.nn.functional.interpolate(mode="bicubic", align_corners=False) in float64, no
antialiasing. Inputs are 0.02 * r, where r is a function of the tensor's name and the flat index, as
for all golden files. An independent bicubic kernel must agree before anything is printed.

  DeiT  pos_embed (1, prefix + g*g, C): prefix tokens are kept, the rest is a grid; old, new are g
  Swin  relative_position_bias_table ((2M-1)^2, heads): a grid for every head; old, new are M
"""

import json
import math
import sys

import torch
import torch.nn.functional as F

from make_narrow_goldens import noise


def values(name, shape):
    """0.02 * r by the golden rule, in float64."""
    return torch.from_numpy(0.02 * noise(name, shape))


def resize(grid, side):
    """(1, C, old, old) to (1, C, side, side)."""
    return F.interpolate(grid, size=(side, side), mode="bicubic", align_corners=False)


def by_hand(grid, side):
    """The same from the cubic convolution kernel, A = -0.75, edges repeated."""
    old, a = grid.shape[-1], -0.75
    weights = torch.zeros(side, old, dtype=torch.float64)
    for i in range(side):
        centre = (i + 0.5) * old / side - 0.5
        for j in range(math.floor(centre) - 1, math.floor(centre) + 3):
            d = abs(centre - j)
            near = (a + 2) * d**3 - (a + 3) * d**2 + 1
            far = a * d**3 - 5 * a * d**2 + 8 * a * d - 4 * a
            weights[i, min(max(j, 0), old - 1)] += near if d <= 1 else far
    return torch.einsum("yh,xw,bchw->bcyx", weights, weights, grid)


def pos_embed(old, new, prefix, resize):
    table = values("pos_embed", (1, prefix + old * old, 4))
    grid = table[:, prefix:].reshape(1, old, old, 4).permute(0, 3, 1, 2)
    grid = resize(grid, new).permute(0, 2, 3, 1).flatten(1, 2)
    return table, torch.cat([table[:, :prefix], grid], 1)


def bias_table(old, new, resize):
    old, new = 2 * old - 1, 2 * new - 1
    table = values("relative_position_bias_table", (old * old, 3))
    grid = resize(table.t().reshape(1, 3, old, old), new)
    return table, grid.reshape(3, new * new).t()


def case(name, function, sizes):
    """One entry; `sizes` are named as the arguments of the function."""
    before, after = function(**sizes, resize=resize)
    error = (after - function(**sizes, resize=by_hand)[1]).abs().max().item()
    print(f"{name} {sizes}: by hand within {error:.1e}", file=sys.stderr)
    if not error <= 1e-15:
        sys.exit("torch and the kernel by hand differ")
    tensors = {
        key: {"shape": list(t.shape), "values": t.flatten().tolist()}
        for key, t in (("input", before), ("output", after))
    }
    return {"tensor": name, **sizes, **tensors}


def main():
    torch.set_num_threads(1)
    cases = [
        case("pos_embed", pos_embed, {"old": old, "new": new, "prefix": prefix})
        for old, new in ((3, 5), (6, 4))
        for prefix in (1, 2)
    ]
    cases += [
        case("relative_position_bias_table", bias_table, {"old": old, "new": new})
        for old, new in ((3, 5), (4, 2))
    ]
    head = {"source": {"script": "tools/interpolate_golden.py"}, "dtype": "float64"}
    head |= {"torch": torch.__version__, "mode": "bicubic", "align_corners": False}
    lines = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in head.items()]
    lines.append(' "cases": [\n' + ",\n".join("  " + json.dumps(c) for c in cases) + "\n ]")
    print("{\n" + ",\n".join(lines) + "\n}")


if __name__ == "__main__":
    main()
