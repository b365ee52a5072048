"""`python -m meganeura`: the devices, the doctor, a demonstration, the kernel for Jupyter."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import numpy as np

from meganeura.errors import MeganeuraError


def show_devices(options: argparse.Namespace) -> int:
    """Prints every adapter, the chosen one, and why the rest is not used."""
    from meganeura.runtime.adapters import devices

    print("\n".join(str(info) for info in devices()))
    return 0


def show_doctor(options: argparse.Namespace) -> int:
    """Prints the usual troubles, each with the line to type; 1 when there is one."""
    from meganeura.notebook import doctor
    from meganeura.notebook.actions import adapters

    findings = doctor.diagnose(doctor.look(adapters))
    print(doctor.report(findings))
    return int(any(finding.state == "bad" for finding in findings))


def show_demo(options: argparse.Namespace) -> int:
    """Trains a small network on handwritten digits, and prints what came of it."""
    import meganeura as mg
    from meganeura.train import data
    from meganeura.train.loop import train

    digits = data.digits(seed=options.seed)
    x, y = mg.input("x", (128, 64)), mg.input("y", (128,), mg.i32)
    h = mg.relu(mg.nn.linear(x, 64, name="hidden"))
    logits = mg.nn.linear(h, 10, name="out").named("logits")
    loss = mg.cross_entropy(logits, y).named("loss")
    program = mg.compile((loss, logits), name="mlp", device=options.device)
    print(repr(program))
    batches = data.batches(digits.train, 128, seed=options.seed)
    run = train(program, data=batches, loss="loss", optimizer=mg.AdamW(3e-3), steps=options.steps)
    print(repr(run))
    test = digits.test
    rows = np.resize(np.arange(len(test)), -(-len(test) // 128) * 128).reshape(-1, 128)
    guesses = [program(x=test.x[part], y=test.y[part])["logits"].argmax(1) for part in rows]
    right = np.concatenate(guesses)[: len(test)] == test.y
    print(f"test accuracy {right.mean():.1%}")
    return 0


def install_kernel(options: argparse.Namespace) -> int:
    """Installs the kernel and says where."""
    from meganeura.notebook.kernelspec import install

    print(f"installed in {install(user=options.user, prefix=options.prefix)}")
    return 0


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    made = argparse.ArgumentParser(prog="python -m meganeura", description=__doc__)
    commands = made.add_subparsers(dest="command", required=True)
    commands.add_parser("devices", help="list the adapters").set_defaults(action=show_devices)
    commands.add_parser("doctor", help="find the usual troubles").set_defaults(action=show_doctor)
    demo = commands.add_parser("demo", help="train a small network on handwritten digits")
    demo.add_argument("--steps", type=int, default=400)
    demo.add_argument("--seed", type=int, default=0)
    demo.add_argument("--device", default=None, help="gpu, numpy, or a part of an adapter's name")
    demo.set_defaults(action=show_demo)
    kernel = commands.add_parser("kernelspec", help="the kernel for Jupyter")
    kernel.add_argument("what", choices=["install"])
    kernel.add_argument("--user", action="store_true", help="for this user, not this environment")
    kernel.add_argument("--prefix", default=None, help="into another environment")
    kernel.set_defaults(action=install_kernel)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Does what the command line says; 0 when all is well."""
    options = parser().parse_args(arguments)
    try:
        return int(options.action(options))
    except MeganeuraError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
