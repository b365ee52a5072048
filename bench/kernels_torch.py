"""PyTorch's side of bench/kernels.py: the same cases, eager and in a CUDA graph, float32 strict;
JSON on the last line.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

torch.backends.cuda.matmul.allow_tf32 = False
torch.backends.cudnn.allow_tf32 = False

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
CONVOLUTIONS = [
    (8, 64, 112, 3, 64),
    (4, 64, 56, 3, 64),
    (4, 256, 14, 3, 256),
    (4, 512, 7, 3, 512),
    (4, 64, 56, 1, 256),
    (128, 32, 4, 3, 64),
]


def rand(*shape: int) -> torch.Tensor:
    """Uniform numbers from -1 to 1 on the card."""
    return torch.rand(shape, device="cuda") * 2 - 1


def cases() -> dict[str, Callable[[], Callable[[], Any]]]:
    """For each name a maker of the call to time."""
    found: dict[str, Callable[[], Callable[[], Any]]] = {}

    def bind(function: Callable[..., Any], *tensors: torch.Tensor) -> Callable[[], Any]:
        return lambda: function(*tensors)

    for m, k, n in MATMULS:
        found[f"matmul {m}x{k}x{n}"] = lambda m=m, k=k, n=n: bind(
            torch.matmul, rand(m, k), rand(k, n)
        )
    for b, c, s, f, o in CONVOLUTIONS:
        shape = f"{b}x{c}x{s}x{s} {f}x{f} {o}"

        def forward(
            b: int = b, c: int = c, s: int = s, f: int = f, o: int = o
        ) -> Callable[[], Any]:
            return bind(
                lambda x, w: F.conv2d(x, w, padding=f // 2), rand(b, c, s, s), rand(o, c, f, f)
            )

        def gradient(
            which: str, b: int = b, c: int = c, s: int = s, f: int = f, o: int = o
        ) -> Callable[[], Any]:
            x, w, g = rand(b, c, s, s), rand(o, c, f, f), rand(b, o, s, s)
            if which == "x":
                return bind(lambda: torch.nn.grad.conv2d_input(x.shape, w, g, padding=f // 2))
            return bind(lambda: torch.nn.grad.conv2d_weight(x, w.shape, g, padding=f // 2))

        found[f"conv {shape}"] = forward
        found[f"conv dx {shape}"] = lambda gradient=gradient: gradient("x")
        found[f"conv dw {shape}"] = lambda gradient=gradient: gradient("w")
    found["softmax 4096x768"] = lambda: bind(lambda x: F.softmax(x, -1), rand(4096, 768))
    found["softmax 65536x128"] = lambda: bind(lambda x: F.softmax(x, -1), rand(65536, 128))
    for rows in (4096, 65536):
        found[f"layer norm {rows}x768"] = lambda rows=rows: bind(
            lambda x, w, b: F.layer_norm(x, (768,), w, b), rand(rows, 768), rand(768), rand(768)
        )
    found["cross entropy 4096x32000"] = lambda: bind(
        F.cross_entropy, rand(4096, 32000), torch.arange(4096, device="cuda") % 32000
    )
    size = 1 << 26
    found["gelu 64M"] = lambda: bind(lambda x: F.gelu(x, approximate="tanh"), rand(size))
    found["a*b+c 64M"] = lambda: bind(lambda a, b, c: a * b + c, rand(size), rand(size), rand(size))
    found["sum 64M"] = lambda: bind(torch.sum, rand(size))
    found["column sum 65536x768"] = lambda: bind(lambda x: x.sum(0), rand(65536, 768))
    found["linear gelu 4096x768x3072"] = lambda: bind(
        lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh"),
        rand(4096, 768),
        rand(3072, 768),
        rand(3072),
    )
    found["conv norm relu pool 8x64x112"] = lambda: bind(
        lambda x, w, s, t: F.max_pool2d(F.relu(F.conv2d(x, w, padding=1) * s + t), 2),
        rand(8, 64, 112, 112),
        rand(64, 64, 3, 3),
        rand(64, 1, 1),
        rand(64, 1, 1),
    )
    return found


def timed(call: Callable[[], Any], repeats: int) -> float:
    """Microseconds a call by events, the median of seven."""
    samples = []
    for _ in range(7):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        for _ in range(repeats):
            call()
        end.record()
        torch.cuda.synchronize()
        samples.append(begin.elapsed_time(end) * 1e3 / repeats)
    return statistics.median(samples)


def graphed(call: Callable[[], Any], repeats: int) -> float:
    """The same with the calls captured in one CUDA graph."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(repeats):
            call()
    return timed(graph.replay, 1) / repeats


def main() -> None:
    """Times every case that is asked for."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    only = parser.parse_args().only
    result: dict[str, Any] = {}
    for name, make in cases().items():
        if only and not any(part in name for part in only.split(",")):
            continue
        call = make()
        with torch.no_grad():
            call()
            torch.cuda.synchronize()
            first = timed(call, 1)
            repeats = max(3, min(200, int(20000 / max(first, 1.0))))
            row = {"eager": timed(call, repeats)}
            try:
                row["graph"] = graphed(call, min(repeats, 50))
            except Exception as error:  # what cannot be captured is said
                row["why"] = str(error)[:200]
        result[name] = row
        del call
        torch.cuda.empty_cache()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
