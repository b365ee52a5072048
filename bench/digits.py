"""The digits benchmark: accuracy, steps a second, recording, cold compile; PyTorch beside.

    python bench/digits.py --out digits.json [--data digits.npz] [--device gpu]
        [--torch-python "env PYTHONPATH= python3"]

A quarter of the 1,797 digits is held out; 400 AdamW steps of 128 train an MLP 64-64-10 and a CNN
(3x3 conv 32, pool, 3x3 conv 64, pool, linear), each from five seeds. PyTorch runs in a process of
its own on the same weights, batches and settings, in strict float32 (TF32 off).

On a machine without scikit-learn, take the data along: `--make-data digits.npz` writes them.
Needs numpy and wgpu. Every section is tried by itself: what fails is written down, the rest runs.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

BATCH, LR, CLASSES = 128, 3e-3, 10
NO_CACHES = {"__GL_SHADER_DISK_CACHE": "0", "MESA_SHADER_CACHE_DISABLE": "true"}


def graph_of(model: str) -> Any:
    """The model in the user's API, as a graph with loss and logits."""
    import meganeura as mg
    from meganeura.ir.graph import Graph

    x = mg.input("x", (BATCH, 64))
    y = mg.input("y", (BATCH,), mg.i32)
    if model == "mlp":
        h = mg.relu(mg.nn.linear(x, 64, name="hidden"))
    else:
        h = x.reshape(BATCH, 1, 8, 8)
        h = mg.max_pool2d(mg.relu(mg.nn.conv2d(h, 32, 3, padding=1, name="conv1")), 2)
        h = mg.max_pool2d(mg.relu(mg.nn.conv2d(h, 64, 3, padding=1, name="conv2")), 2)
        h = h.reshape(BATCH, 256)
    logits = mg.nn.linear(h, CLASSES, name="out")
    return Graph((("loss", mg.cross_entropy(logits, y).node), ("logits", logits.node)))


def program_of(model: str, device: str | None, seed: int = 0) -> Any:
    """A fresh program with the first weights of a seed."""
    from meganeura.compiler import compile_program
    from meganeura.runtime.device import get_device
    from meganeura.runtime.store import ParameterStore

    store = ParameterStore(get_device(device), seed)
    return compile_program(graph_of(model), name=model, store=store)


def rows_of(data: Any, seed: int) -> tuple[Any, Any]:
    """The seed's rows to learn from and its rows held out: a quarter."""
    from meganeura.train.data import Dataset

    order = np.random.default_rng(seed).permutation(len(data["x"]))
    cut = round(len(order) * 0.25)
    held, rest = order[:cut], order[cut:]
    return Dataset(data["x"][rest], data["y"][rest]), Dataset(data["x"][held], data["y"][held])


def fit(program: Any, rows: Any, seed: int, steps: int, **more: Any) -> Any:
    """One training of the benchmark."""
    from meganeura.train import data
    from meganeura.train.loop import train
    from meganeura.train.optim import AdamW

    batches = data.batches(rows, BATCH, seed=seed)
    settings = {"loss": "loss", "optimizer": AdamW(LR), "seed": seed, "progress": False}
    return train(program, data=batches, steps=steps, **settings, **more)


def accuracies(model: str, data: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Test accuracy of every seed, and the losses of the first."""
    from meganeura.train.metrics import Accuracy, evaluate

    found, losses = [], []
    for seed in range(args.seeds):
        program = program_of(model, args.device, seed)
        train_rows, test_rows = rows_of(data, seed)
        run = fit(program, train_rows, seed, args.steps)
        found.append(evaluate(program, test_rows, {"accuracy": Accuracy()})["accuracy"])
        losses = losses or [float(v) for v in run.history.losses[:100]]
    return {"accuracy": found, "mean": statistics.mean(found), "losses": losses}


def speeds(model: str, data: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Steps a second, feeds from the host included: the median, and all repeats."""
    program = program_of(model, args.device)
    rows, _ = rows_of(data, 0)
    first = fit(program, rows, 0, 20)
    probe = fit(program, rows, 0, max(int(first.steps_per_second * args.seconds / 4), 20))
    many = max(int(probe.steps_per_second * args.seconds), 20)
    rates = []
    for _ in range(args.repeats):
        start = time.perf_counter()
        fit(program, rows, 0, many)
        rates.append(many / (time.perf_counter() - start))
    step = first.step_program
    return {
        "median": statistics.median(rates),
        "repeats": rates,
        "launches": len(step.schedule.launches),
        "waves": len(step.schedule.waves),
        "compile_s": step.compile_seconds,
    }


def recording(model: str, data: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Microseconds a launch costs the processor: recording it, and finishing the commands."""
    program = program_of(model, args.device)
    step = fit(program, rows_of(data, 0)[0], 0, 2).step_program
    stepper = step.stepper(slots=1)
    if not hasattr(stepper, "tape"):
        return {"note": "the NumPy device records nothing"}
    tape, handle = stepper.tape(0), step.device.handle
    times = []
    for _ in range(3 if step.target.software else 30):
        encoder = handle.create_command_encoder()
        compute = encoder.begin_compute_pass()
        begin = time.perf_counter()
        stepper.recorder.replay(compute, [tape] * 64)
        recorded = time.perf_counter()
        compute.end()
        commands = encoder.finish()
        finished = time.perf_counter()
        handle.queue.submit([commands])
        step.device.wait()
        times.append((recorded - begin, finished - recorded, time.perf_counter() - finished))
    launches = 64 * len(tape)
    middle = [statistics.median(column) / launches * 1e6 for column in zip(*times, strict=True)]
    return dict(zip(("record_us", "finish_us", "run_us"), middle, strict=True))


def kernels(model: str, data: Any, args: argparse.Namespace) -> dict[str, Any]:
    """The launches of a step by the device's clock."""
    from meganeura.profile.measure import profile

    program = program_of(model, args.device)
    fit(program, rows_of(data, 0)[0], 0, 20)
    found = profile(program, steps=50)
    peaks = found.target.peaks
    return {
        "table": found.table(),
        "step_us": found.step_us,
        "busy_us": found.busy_us,
        "peaks": None if peaks is None else {"flops": peaks.flops, "bytes": peaks.bytes},
    }


def cold(model: str, data: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Seconds to compile the training step in a fresh process with the drivers' caches off."""
    command = [sys.executable, __file__, "--cold-child", model]
    if args.device:
        command += ["--device", args.device]
    env = {**os.environ, **NO_CACHES}
    found = []
    for _ in range(3):
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip().splitlines()[-1])
        found.append(json.loads(done.stdout.splitlines()[-1]))
    middle = sorted(found, key=lambda f: float(f["total_s"]))[1]
    return {**middle, "repeats": [f["total_s"] for f in found]}


def cold_child(model: str, device: str | None) -> None:
    """In the fresh process: gradients, passes, pipelines of the step; the device is open before."""
    from meganeura.compiler import compile_program
    from meganeura.runtime.device import get_device
    from meganeura.train.optim import AdamW
    from meganeura.train.step import step_graph

    opened = get_device(device)
    graph = graph_of(model)
    begin = time.perf_counter()
    step = step_graph(graph, "loss", AdamW(LR))
    built = time.perf_counter()
    program = compile_program(step, name=model, kind="training step", device=opened)
    end = time.perf_counter()
    print(
        json.dumps(
            {
                "total_s": end - begin,
                "gradients_s": built - begin,
                "passes_s": program.plan.seconds,
                "pipelines_s": program.pipeline_seconds,
            }
        )
    )


def torch_side(data: Any, args: argparse.Namespace) -> dict[str, Any]:
    """PyTorch on the same job, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        job, result = Path(folder, "job.npz"), Path(folder, "result.json")
        np.savez(job, **torch_job(data, args))
        command = [*shlex.split(args.torch_python), str(ROOT / "bench" / "digits_torch.py")]
        done = subprocess.run(
            [*command, str(job), str(result)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            lines = done.stderr.strip().splitlines()
            raise RuntimeError(lines[-1] if lines else f"exit status {done.returncode}")
        found: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
    return found


def torch_job(data: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Weights, data and the order of rows, as our own trainings have them."""
    from meganeura.train import data as ours

    job: dict[str, Any] = {
        "models": np.array(args.models),
        "seeds": args.seeds,
        "steps": args.steps,
        "seconds": args.seconds,
        "repeats": args.repeats,
        "lr": LR,
    }
    for seed in range(args.seeds):
        train_rows, test_rows = rows_of(data, seed)
        stream = iter(ours.batches(np.arange(len(train_rows)), BATCH, seed=seed))
        order = [ours.arrays_of(next(stream))[0] for _ in range(max(args.steps, 1))]
        job |= {f"data/{seed}/x": train_rows.x, f"data/{seed}/y": train_rows.y}
        job |= {f"data/{seed}/x_test": test_rows.x, f"data/{seed}/y_test": test_rows.y}
        job[f"data/{seed}/order"] = np.stack(order)
        for model in args.models:
            values = program_of(model, "numpy", seed).parameters.values()
            job |= {f"{model}/{seed}/{i}": value for i, value in enumerate(values)}
    return job


def attempt(name: str, action: Callable[[], Any]) -> Any:
    """The result, or what went wrong as text; said at once."""
    begin = time.perf_counter()
    try:
        found = action()
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0][:200]}"}
    print(f"{name}: {short(found)}  [{time.perf_counter() - begin:.1f} s]", flush=True)
    return found


def short(found: Any) -> str:
    """A result in one line."""
    if isinstance(found, dict) and "table" in found:
        return "\n" + str(found["table"])
    return json.dumps(rounded(found))


def rounded(value: Any) -> Any:
    """Numbers to four figures, long lists cut."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {key: rounded(v) for key, v in value.items()}
    return [rounded(v) for v in value[:5]] if isinstance(value, list) else value


def read_data(path: str | None) -> dict[str, Any]:
    """All digits: x float32 [1797, 64] from 0 to 1, y int32."""
    if path is not None:
        with np.load(path) as file:
            return {"x": file["x"], "y": file["y"]}
    from meganeura.train.data import digits

    split = digits()
    x = np.concatenate([split.train.x, split.test.x])
    return {"x": x, "y": np.concatenate([split.train.y, split.test.y])}


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description="The digits benchmark.")
    parser.add_argument("--out", default="digits.json", help="where the figures go")
    parser.add_argument("--data", help="an .npz with x and y, instead of scikit-learn")
    parser.add_argument("--make-data", metavar="NPZ", help="write that .npz, and stop")
    parser.add_argument("--device", help='"gpu", "numpy", or part of an adapter\'s name')
    parser.add_argument("--models", nargs="+", default=["mlp", "cnn"], choices=["mlp", "cnn"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each timed repeat")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--skip", nargs="*", default=[], help="sections to leave out")
    parser.add_argument(
        "--torch-python", default=sys.executable, help="the command that runs a Python with torch"
    )
    parser.add_argument("--cold-child", help=argparse.SUPPRESS)
    return parser.parse_args()


SECTIONS: dict[str, Callable[[str, Any, argparse.Namespace], dict[str, Any]]] = {
    "accuracy": accuracies,
    "speed": speeds,
    "recording": recording,
    "cold": cold,
    "kernels": kernels,
}


def main() -> None:
    """Runs the sections, prints each when it is done, and writes all figures."""
    args = arguments()
    if args.cold_child:
        cold_child(args.cold_child, args.device)
        return
    data = read_data(args.data)
    if args.make_data:
        np.savez(args.make_data, **data)
        return
    program = program_of("mlp", args.device)
    target = program.target
    result: dict[str, Any] = {"device": target.name, "backend": target.backend, "batch": BATCH}
    print(f"{target.name}, {target.backend}, {target.driver}")
    for model in args.models:
        result[model] = {
            name: attempt(f"{model} {name}", lambda s=section, m=model: s(m, data, args))
            for name, section in SECTIONS.items()
            if name not in args.skip
        }
        Path(args.out).write_text(json.dumps(result, indent=1), encoding="utf-8")
    if "torch" not in args.skip:
        result["torch"] = attempt("torch", lambda: torch_side(data, args))
    Path(args.out).write_text(json.dumps(result, indent=1), encoding="utf-8")
    for line in summary(result, args.models):
        print(line)


def summary(result: dict[str, Any], models: list[str]) -> list[str]:
    """The figures side by side."""
    lines = []
    for model in models:
        ours, theirs = result[model], result.get("torch", {}).get(model, {})
        rows = {"meganeura": ours.get("speed", {}), **{w: theirs.get(w, {}) for w in _WAYS}}
        for way, found in rows.items():
            if "median" in found:
                low, high = min(found["repeats"]), max(found["repeats"])
                text = f"{found['median']:,.0f} steps/s ({low:,.0f} to {high:,.0f})"
                lines.append(f"{model:4} {_WAYS.get(way, way):22} {text}")
        for who, shares in (("meganeura", ours.get("accuracy", {})), ("PyTorch", theirs)):
            values = shares.get("accuracy")
            if isinstance(values, list) and values:
                mean = statistics.mean(values)
                lines.append(
                    f"{model:4} {who:22} test accuracy {mean:.2%} over {len(values)} seeds"
                )
    return lines


_WAYS = {
    "eager": "PyTorch eager",
    "compile": "PyTorch compiled",
    "graph": "PyTorch whole-step graph",
}

if __name__ == "__main__":
    main()
