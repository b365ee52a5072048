"""Kernels by themselves, float32 strict, beside PyTorch: matmul, convolution, softmax, norms.

    python bench/kernels.py --out kernels.json [--torch-python "env PYTHONPATH= python3"]
        [--only matmul,softmax]

Each case is a program of parameters that lie on the device. A figure is the median device time of a
step when many follow each other in one pass (timestamps at its ends), after a warm-up that brings
the clocks up. PyTorch runs in a process of its own (bench/kernels_torch.py), eager and captured in
a CUDA graph, TF32 off.
"""

from __future__ import annotations

import argparse
import json
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

MATMULS = [
    (256, 256, 256),
    (512, 512, 512),
    (1024, 1024, 1024),
    (2048, 2048, 2048),
    (4096, 4096, 4096),
    (128, 576, 576),
    (128, 1536, 576),
    (128, 576, 1536),
    (1, 576, 49152),
    (128, 4032, 1000),
    (784, 256, 64),
    (17, 33, 65),
    (3072, 768, 768),
]
"""m, k, n"""
CONVOLUTIONS = [
    (8, 64, 112, 3, 64),
    (4, 64, 56, 3, 64),
    (4, 256, 14, 3, 256),
    (4, 512, 7, 3, 512),
    (4, 64, 56, 1, 256),
    (128, 32, 4, 3, 64),
]
"""batch, channels, height and width, filter, output channels"""


def cases() -> dict[str, tuple[Callable[[], Any], float, float]]:
    """For each name what to compile, its flops and the fewest bytes it must move."""
    import numpy as np

    import meganeura as mg

    def data(name: str, *shape: int) -> Any:
        return mg.parameter(name, shape, init=mg.init.uniform(-1.0, 1.0))

    found: dict[str, tuple[Callable[[], Any], float, float]] = {}
    for m, k, n in MATMULS:
        found[f"matmul {m}x{k}x{n}"] = (
            lambda m=m, k=k, n=n: mg.matmul(data("a", m, k), data("b", k, n)),
            2.0 * m * k * n,
            4.0 * (m * k + k * n + m * n),
        )
    for b, c, s, f, o in CONVOLUTIONS:
        shape = f"{b}x{c}x{s}x{s} {f}x{f} {o}"
        flops, moved = (
            2.0 * b * s * s * c * o * f * f,
            4.0 * (b * c * s * s + o * c * f * f + b * o * s * s),
        )

        def conv(b: int = b, c: int = c, s: int = s, f: int = f, o: int = o, grad: str = "") -> Any:
            x, w = data("x", b, c, s, s), data("w", o, c, f, f)
            y = mg.conv2d(x, w, padding=f // 2)
            if not grad:
                return y
            seed = data("g", b, o, s, s)
            return mg.grad(mg.sum(y * seed), [x if grad == "x" else w])[0]

        found[f"conv {shape}"] = (conv, flops, moved)
        found[f"conv dx {shape}"] = (lambda conv=conv: conv(grad="x"), flops, moved)
        found[f"conv dw {shape}"] = (lambda conv=conv: conv(grad="w"), flops, moved)
    rows, width = 4096, 768
    wide = 4.0 * rows * width
    found["softmax 4096x768"] = (
        lambda: mg.softmax(data("x", rows, width)),
        5.0 * rows * width,
        2 * wide,
    )
    found["softmax 65536x128"] = (
        lambda: mg.softmax(data("x", 65536, 128)),
        5.0 * 65536 * 128,
        8.0 * 65536 * 128,
    )
    found["layer norm 4096x768"] = (
        lambda: mg.nn.layer_norm(data("x", rows, width), name="n"),
        8.0 * rows * width,
        2 * wide,
    )
    found["layer norm 65536x768"] = (
        lambda: mg.nn.layer_norm(data("x", 65536, width), name="n"),
        8.0 * 65536 * width,
        8.0 * 65536 * width,
    )
    found["cross entropy 4096x32000"] = (
        lambda: mg.cross_entropy(
            data("x", 4096, 32000), mg.constant(np.arange(4096, dtype=np.int32) % 32000)
        ),
        4.0 * 4096 * 32000,
        4.0 * 4096 * 32000,
    )
    size = 1 << 26
    found["gelu 64M"] = (lambda: mg.gelu(data("x", size)), 10.0 * size, 8.0 * size)
    found["a*b+c 64M"] = (
        lambda: data("a", size) * data("b", size) + data("c", size),
        2.0 * size,
        16.0 * size,
    )
    found["sum 64M"] = (lambda: mg.sum(data("x", size)), 1.0 * size, 4.0 * size)
    found["column sum 65536x768"] = (
        lambda: mg.sum(data("x", 65536, 768), 0),
        65536.0 * 768,
        4.0 * 65536 * 768,
    )
    found["linear gelu 4096x768x3072"] = (
        lambda: mg.gelu(mg.nn.linear(data("x", 4096, 768), 3072, name="l")),
        2.0 * 4096 * 768 * 3072,
        4.0 * (4096 * 768 + 768 * 3072 + 4096 * 3072),
    )
    found["conv norm relu pool 8x64x112"] = (
        lambda: mg.max_pool2d(
            mg.relu(
                mg.conv2d(data("x", 8, 64, 112, 112), data("w", 64, 64, 3, 3), padding=1)
                * data("s", 64, 1, 1)
                + data("t", 64, 1, 1)
            ),
            2,
        ),
        2.0 * 8 * 112 * 112 * 64 * 64 * 9,
        36e6,
    )
    return found


def measure(
    name: str, make: Callable[[], Any], flops: float, moved: float, args: argparse.Namespace
) -> dict[str, Any]:
    """One case on our side."""
    import numpy as np

    import meganeura as mg
    from meganeura.ir.evaluate import evaluate_nodes

    program = mg.compile({"y": make()}, device=args.device, trusted=False)
    if not args.checked and (flops < 2e10 or moved < 1e9):
        trusted_keys = {k.key for k in program.kernels}
        program.device.verified |= trusted_keys if args.trust else set()
        program = program.with_options(trusted=True)
    (first,) = program.time_steps({}, 2, 1)
    repeats = max(3, min(400, int(0.02 / max(first, 1e-6))))
    warm(program, repeats)
    times = program.time_steps({}, repeats, 7)
    seconds = statistics.median(times)
    row: dict[str, Any] = {
        "us": seconds * 1e6,
        "low": min(times) * 1e6,
        "high": max(times) * 1e6,
        "launches": len(program.kernels),
        "tflops": flops / seconds / 1e12,
        "gbs": moved / seconds / 1e9,
        "tiles": [k.tile.describe() for k in program.kernels],
    }
    if args.check and flops < 3e9:
        y = program()
        leaves = {
            n: program.store.read([str(n.name)])[str(n.name)]
            for n in program.graph.leaves("parameter")
        }
        want = evaluate_nodes(program.graph.roots, leaves, np.float64)[program.graph.outputs[0][1]]
        row["error"] = float(
            np.linalg.norm((y - want).ravel()) / max(np.linalg.norm(np.ravel(want)), 1e-30)
        )
    program.store.free()
    return row


def warm(program: Any, repeats: int, seconds: float = 0.6) -> None:
    """Keeps the card busy: after a pause its clocks take some tenths of a second to come back."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        program.time_steps({}, repeats, 3)


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="kernels.json")
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--torch-python", default="")
    parser.add_argument("--only", default="")
    parser.add_argument("--checked", action="store_true")
    parser.add_argument(
        "--trust", action="store_true", help="skip the check of each kernel before it is trusted"
    )
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    ours: dict[str, Any] = {}
    for name, (make, flops, moved) in cases().items():
        if args.only and not any(part in name for part in args.only.split(",")):
            continue
        try:
            ours[name] = measure(name, make, flops, moved, args)
        except Exception as error:  # a case that fails is written down, the rest runs
            ours[name] = {"failed": f"{type(error).__name__}: {error}"}
        print(name, json.dumps(ours[name]), file=sys.stderr, flush=True)
    theirs: dict[str, Any] = {}
    if args.torch_python:
        command = [
            *shlex.split(args.torch_python),
            str(ROOT / "bench" / "kernels_torch.py"),
            "--only",
            args.only,
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        print(done.stderr[-2000:], file=sys.stderr)
        theirs = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
    Path(args.out).write_text(
        json.dumps({"ours": ours, "torch": theirs}, indent=1), encoding="utf-8"
    )
    print(f"{'case':32} {'ours µs':>9} {'least..most':>17} {'TFLOP/s':>8} {'GB/s':>7} ", end="")
    print(f"{'eager µs':>9} {'graph µs':>9} {'ratio':>6}  tiles")
    for name, row in ours.items():
        if "failed" in row:
            print(f"{name:32} {row['failed'][:120]}")
            continue
        other = theirs.get(name, {})
        eager, graph = other.get("eager", float("nan")), other.get("graph", float("nan"))
        spread = f"{row['low']:.1f}..{row['high']:.1f}"
        print(
            f"{name:32} {row['us']:9.1f} {spread:>17} {row['tflops']:8.2f} {row['gbs']:7.0f} "
            f"{eager:9.1f} {graph:9.1f} "
            f"{row['us'] / graph:6.2f}  {'; '.join(row['tiles'])}"
            + (f"  error {row['error']:.1e}" if "error" in row else "")
        )


if __name__ == "__main__":
    main()
