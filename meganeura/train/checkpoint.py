"""Checkpoints: parameters, moments, step and seed in one safetensors file, resumed bit for bit."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from meganeura.errors import CheckpointError
from meganeura.ir.graph import Array, Node
from meganeura.train import safetensors
from meganeura.train.run import Run
from meganeura.train.state import kept, to_device, to_host

FORMAT = "meganeura checkpoint 1"
_SHOWN = 4


@dataclass(frozen=True)
class Checkpoint:
    """A state from which training goes on: `step` updates are behind it."""

    state: Mapping[str, Array]
    step: int
    seed: int
    optimizer: str = ""
    moments: tuple[str, ...] = ()

    def __repr__(self) -> str:
        made = f", {self.optimizer}" if self.optimizer else ""
        count = f"{len(self.state)} tensors"
        return f"<Checkpoint at step {self.step:,}: {count}, seed {self.seed}{made}>"


def of_run(run: Run) -> Checkpoint:
    """The last state of a run."""
    own = {str(node.name) for node in kept(run.program.graph)}
    moments = tuple(name for name in run.state if name not in own)
    optimizer = type(run.optimizer).__name__
    return Checkpoint(run.state, run.state_step, run.seed, optimizer, moments)


def save(what: Any, path: str | os.PathLike[str]) -> None:
    """Writes a run (parameters, moments, step, seed), a checkpoint, or a program (its parameters
    alone).

    The file appears whole or not at all.
    """
    if isinstance(what, Run):
        checkpoint = of_run(what)
    elif isinstance(what, Checkpoint):
        checkpoint = what
    else:
        checkpoint = Checkpoint(to_host(what), 0, 0)
    metadata = {
        "format": FORMAT,
        "step": str(checkpoint.step),
        "seed": str(checkpoint.seed),
        "optimizer": checkpoint.optimizer,
        "moments": json.dumps(checkpoint.moments),
    }
    safetensors.write(path, checkpoint.state, metadata)


def check_place(path: str | os.PathLike[str]) -> None:
    """CheckpointError when no file can be written there: better before the training than after."""
    place = Path(path)
    folder = place.parent
    if place.is_dir():
        fault, hint = "a folder", f"name a file in it, such as {place / 'run.safetensors'}"
    elif not folder.is_dir():
        fault, hint = f"no folder {folder}", f"make it first: mkdir -p {folder}"
    elif not os.access(folder, os.W_OK):
        fault, hint = f"{folder} cannot be written to", "choose another folder"
    else:
        return
    raise CheckpointError(
        f"a checkpoint cannot be written to {place.name}",
        expected="the path of a file in a folder that is there",
        got=fault,
        hint=hint,
    )


def load(program: Any, path: str | os.PathLike[str]) -> Checkpoint:
    """Puts a file's parameters into the program, and gives what `train(..., resume=)` needs to go
    on.

    Raises CheckpointError for a damaged file or one of another model; then nothing has changed.
    """
    checkpoint = read(program, path)
    to_device(program, checkpoint.state)
    return checkpoint


def read(program: Any, path: str | os.PathLike[str]) -> Checkpoint:
    """The checkpoint in a file, checked against the program, which stays as it is."""
    file = safetensors.read(path)
    name = Path(path).name
    moments = _names(name, file.metadata.get("moments", "[]"))
    check(name, program.name, kept(program.graph), file.tensors, moments)
    return Checkpoint(
        file.tensors,
        _number(name, file.metadata, "step"),
        _number(name, file.metadata, "seed"),
        file.metadata.get("optimizer", ""),
        moments,
    )


def check(
    file: str,
    model: str,
    nodes: Sequence[Node],
    tensors: Mapping[str, Array],
    others: Sequence[str],
) -> None:
    """Every leaf must be there in its shape and type, and nothing that is neither a leaf nor in
    `others`.
    """
    wanted = {str(node.name): node for node in nodes}
    faults = []
    for name, node in wanted.items():
        expected = f"{list(node.shape)} {node.dtype}"
        if name not in tensors:
            faults.append((f"{name} {expected}", f"no {name}"))
            continue
        array = tensors[name]
        if array.shape != node.shape or array.dtype != np.dtype(node.dtype.numpy):
            faults.append((f"{name} {expected}", f"{name} {list(array.shape)} {array.dtype}"))
    unknown = [name for name in tensors if name not in wanted and name not in others]
    faults += [(f"no {name}", f"{name} {list(tensors[name].shape)}") for name in unknown]
    if faults:
        raise CheckpointError(
            f"{file} is a checkpoint of another model than {model}",
            expected=_some([expected for expected, _ in faults]),
            got=_some([got for _, got in faults]),
            hint="compile the model that was saved, or train this one anew; nothing was changed",
        )


def _some(parts: list[str]) -> str:
    more = f"; and {len(parts) - _SHOWN} more" if len(parts) > _SHOWN else ""
    return "; ".join(parts[:_SHOWN]) + more


def _names(file: str, text: str) -> tuple[str, ...]:
    try:
        names = json.loads(text)
    except ValueError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise CheckpointError(
            f"{file} has damaged metadata", expected="moments: a list of names", got=repr(text)
        )
    return tuple(names)


def _number(file: str, metadata: Mapping[str, str], key: str) -> int:
    text = metadata.get(key, "0")
    if not text.removeprefix("-").isdecimal():
        raise CheckpointError(
            f"{file} has damaged metadata", expected=f"{key}: a whole number", got=repr(text)
        )
    return int(text)
