"""The PyTorch side of `digits.py`: the same weights, batches and settings, in a process of its own.

    python bench/digits_torch.py JOB.npz RESULT.json

It needs numpy and torch only, so it can run with another Python or another PYTHONPATH than ours.
Data lie on the device before the clock starts, and a batch is gathered there: PyTorch is spared
the copy from the host that our own steps pay for.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

import numpy as np
import torch
from torch import nn

MODELS = ("mlp", "cnn")


def build(model: str) -> nn.Module:
    """The models of the benchmark; images come flat."""
    if model == "mlp":
        return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(256, 10)),
    )


def start(model: str, job: Any, seed: int, device: str) -> nn.Module:
    """A model with the first weights that our own program had for that seed."""
    made = build(model)
    weights = [job[f"{model}/{seed}/{i}"] for i in range(len(list(made.parameters())))]
    with torch.no_grad():
        for parameter, weight in zip(made.parameters(), weights, strict=True):
            value = torch.from_numpy(weight)
            parameter.copy_(value.T if value.ndim == 2 else value)
    return made.to(device)


class Setup:
    """What one training needs, on the device."""

    def __init__(
        self, model: str, job: Any, seed: int, device: str, capturable: bool = False
    ) -> None:
        self.net = start(model, job, seed, device)
        self.optimizer = torch.optim.AdamW(
            self.net.parameters(), lr=float(job["lr"]), capturable=capturable
        )
        self.x = torch.from_numpy(job[f"data/{seed}/x"]).to(device)
        self.y = torch.from_numpy(job[f"data/{seed}/y"]).long().to(device)
        self.order = torch.from_numpy(job[f"data/{seed}/order"]).to(device)

    def batch(self, step: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The batch of a step, gathered on the device."""
        rows = self.order[step % len(self.order)]
        return self.x[rows], self.y[rows]

    def step(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """Forward, backward, update."""
        self.optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(self.net(x), y)
        loss.backward()
        self.optimizer.step()
        return loss.detach()


def accuracy(model: str, job: Any, seed: int, device: str) -> float:
    """Test accuracy after the benchmark's steps."""
    setup = Setup(model, job, seed, device)
    for step in range(int(job["steps"])):
        setup.step(*setup.batch(step))
    with torch.no_grad():
        x = torch.from_numpy(job[f"data/{seed}/x_test"]).to(device)
        best = setup.net(x).argmax(1).cpu().numpy()
    return float(np.mean(best == job[f"data/{seed}/y_test"]))


def wait(device: str) -> None:
    """Returns when the device is idle."""
    if device == "cuda":
        torch.cuda.synchronize()


def eager(model: str, job: Any, device: str) -> Any:
    """A function that runs one step the ordinary way."""
    setup = Setup(model, job, 0, device)
    return lambda step: setup.step(*setup.batch(step))


def compiled(model: str, job: Any, device: str) -> Any:
    """The same with the model compiled."""
    setup = Setup(model, job, 0, device)
    setup.net = torch.compile(setup.net)
    return lambda step: setup.step(*setup.batch(step))


def graphed(model: str, job: Any, device: str) -> Any:
    """The whole step, update included, as one CUDA graph; a batch is gathered into its inputs."""
    setup = Setup(model, job, 0, device, capturable=True)
    x, y = (t.clone() for t in setup.batch(0))
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(5):
            setup.step(x, y)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    setup.optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        setup.step(x, y)

    def run(step: int) -> None:
        rows = setup.order[step % len(setup.order)]
        torch.index_select(setup.x, 0, rows, out=x)
        torch.index_select(setup.y, 0, rows, out=y)
        graph.replay()

    return run


def speed(run: Any, device: str, seconds: float, repeats: int) -> dict[str, Any]:
    """Steps a second: the median, and all repeats."""
    for step in range(20):
        run(step)
    wait(device)
    start_time, count = time.perf_counter(), 0
    while time.perf_counter() - start_time < seconds / 4:
        run(count)
        count += 1
    wait(device)
    many = max(int(count * 4), 20)
    rates = []
    for _ in range(repeats):
        start_time = time.perf_counter()
        for step in range(many):
            run(step)
        wait(device)
        rates.append(many / (time.perf_counter() - start_time))
    return {"median": statistics.median(rates), "repeats": rates}


def attempt(action: Any) -> Any:
    """The result, or what went wrong as text: one failure must not lose the rest."""
    try:
        return action()
    except Exception as error:
        return {"error": f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"}


def main() -> None:
    """Runs everything that the job asks for, and writes the figures."""
    job, result = np.load(sys.argv[1]), sys.argv[2]
    torch.set_float32_matmul_precision("highest")
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    device = "cuda" if torch.cuda.is_available() else "cpu"
    seconds, repeats = float(job["seconds"]), int(job["repeats"])
    found: dict[str, Any] = {"torch": torch.__version__, "device": device}
    if device == "cuda":
        found["name"] = torch.cuda.get_device_name()
    ways = {"eager": eager, "compile": compiled, **({"graph": graphed} if device == "cuda" else {})}
    for model in [str(name) for name in job["models"]]:
        entry: dict[str, Any] = {}
        seeds = range(int(job["seeds"]))
        entry["accuracy"] = attempt(
            lambda m=model, every=seeds: [accuracy(m, job, s, device) for s in every]
        )
        for name, way in ways.items():
            entry[name] = attempt(
                lambda w=way, m=model: speed(w(m, job, device), device, seconds, repeats)
            )
        found[model] = entry
    with open(result, "w", encoding="utf-8") as file:
        json.dump(found, file)


if __name__ == "__main__":
    main()
