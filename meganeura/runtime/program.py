"""The live object: a compiled program on a device."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from meganeura.codegen.kernel import Kernel
from meganeura.errors import FeedError, OptionError
from meganeura.ir.graph import Array, Graph
from meganeura.memory.plan import MemoryPlan
from meganeura.plan import Options, PassRecord, Plan, ProgramKind
from meganeura.runtime import clock
from meganeura.runtime.device import Device, GpuDevice
from meganeura.runtime.feeds import by_name, checked
from meganeura.runtime.numpy_stepper import NumpyStepper
from meganeura.runtime.stepper import GpuStepper
from meganeura.runtime.store import ParameterStore
from meganeura.runtime.verify import verify
from meganeura.schedule.waves import Schedule
from meganeura.target import Target

Recompile = Callable[[Graph, Options], Plan]
Stepper = GpuStepper | NumpyStepper


class Program:
    """A program that can be called, trained, profiled and looked at.

    Made by `mg.compile`. `plan` holds every decision of the compiler; `store` the parameters on the
    device.
    """

    def __init__(
        self, plan: Plan, device: Device, store: ParameterStore, recompile: Recompile
    ) -> None:
        self.device = device
        self.store = store
        self.cache: dict[Any, Any] = {}
        self.timings: dict[str, list[float]] = {}
        self._recompile = recompile
        self._turn = threading.Lock()
        self._adopt(plan)

    def _adopt(self, plan: Plan) -> None:
        """Takes a plan: pipelines are made, except those that the device has already."""
        start = time.perf_counter()
        self.plan = plan
        self._stepper: Stepper | None = None
        self._side: dict[str, Program] = {}
        self._pipelines: dict[str, Any] = {}
        for leaf in (*plan.source.leaves("parameter"), *plan.source.leaves("state")):
            self.store.held(leaf)
        if isinstance(self.device, GpuDevice):
            codes = {k.key: k.wgsl for k in plan.kernels}
            trusted = verify(self.device, plan.kernels) if plan.options.trusted else frozenset()
            self._pipelines = self.device.pipelines(codes, trusted)
        self.pipeline_seconds = time.perf_counter() - start

    @property
    def name(self) -> str:
        """The name under which it was compiled."""
        return self.plan.name

    @property
    def kind(self) -> ProgramKind:
        """ "inference" or "training step"."""
        return self.plan.kind

    @property
    def graph(self) -> Graph:
        """The graph as the user wrote it."""
        return self.plan.source

    @property
    def options(self) -> Options:
        """What is switched on."""
        return self.plan.options

    @property
    def target(self) -> Target:
        """The device's limits, and its peaks once they are measured."""
        return self.device.target

    @property
    def passes(self) -> tuple[PassRecord, ...]:
        """Every pass, before and after."""
        return self.plan.passes

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """The kernels in the order of their launches."""
        return self.plan.kernels

    @property
    def schedule(self) -> Schedule[Kernel]:
        """Launches and waves."""
        return self.plan.schedule

    @property
    def memory(self) -> MemoryPlan:
        """Buffers and lifetimes."""
        return self.plan.memory

    @property
    def compile_seconds(self) -> float:
        """Seconds from the graph to pipelines that are ready."""
        return self.plan.seconds + self.pipeline_seconds

    @property
    def parameters(self) -> dict[str, Array]:
        """Copies of all parameters by name."""
        return self.store.read([str(n.name) for n in self.graph.leaves("parameter")])

    def set_parameters(self, values: Mapping[str, Any]) -> None:
        """New values by name; FeedError, with nothing changed, when one does not fit."""
        self.store.write(values)

    def stepper(self, slots: int = 1) -> Stepper:
        """A runner of steps, fed `slots` at a time without a read-back in between."""
        if isinstance(self.device, GpuDevice):
            return GpuStepper(self.plan, self.device, self.store, self._pipelines, slots)
        return NumpyStepper(self.plan, self.store, slots)

    def __call__(self, /, *args: Any, **feeds: Any) -> Any:
        """Runs once. Feeds come by name, or in the order of the inputs; one output is given as an
        array, several as a dict.
        """
        inputs = self.plan.inputs
        arrays = checked(inputs, by_name(inputs, args, feeds))
        with self._turn:
            if self._stepper is None:
                self._stepper = self.stepper()
            self._stepper.push(arrays)
            results = self._stepper.read_all()
        return next(iter(results.values())) if len(results) == 1 else results

    def read(self, name: str, /, *args: Any, **feeds: Any) -> Array:
        """The value of any named tensor, also one that fusion removed: it is computed on demand
        from the same feeds.
        """
        parameters = {str(n.name) for n in self.graph.nodes if n.op.name in ("parameter", "state")}
        if name in parameters:
            return self.store.read([name])[name]
        if name not in self._side:
            self._side[name] = self._program_for(name)
        side = self._side[name]
        wanted = {str(n.name) for n in side.plan.inputs}
        named = by_name(self.plan.inputs, args, feeds)
        result: Array = side(**{k: v for k, v in named.items() if k in wanted})
        return result

    def _program_for(self, name: str) -> Program:
        nodes = dict(self.graph.outputs) | {
            n.name: n for n in self.graph.nodes if n.name is not None
        }
        if name not in nodes:
            known = ", ".join(sorted(str(k) for k in nodes))
            raise FeedError(
                f"there is no tensor {name!r}", expected=f"one of: {known}", got=repr(name)
            )
        plan = self._recompile(Graph(((name, nodes[name]),)), self.options)
        return Program(plan, self.device, self.store, self._recompile)

    def with_options(self, **changes: Any) -> Program:
        """The same model under other options: parameters are shared, unchanged kernels keep their
        pipelines.
        """
        return Program(self._replan(changes), self.device, self.store, self._recompile)

    def set_options(self, **changes: Any) -> None:
        """Recompiles in place, as a toggle of the workbench does."""
        self.timings = {}
        self.cache.clear()
        self._adopt(self._replan(changes))

    def _replan(self, changes: Mapping[str, Any]) -> Plan:
        known = Options.__dataclass_fields__
        for name in changes:
            if name not in known:
                raise OptionError(
                    f"there is no option {name!r}",
                    expected="one of: " + ", ".join(known),
                    got=repr(name),
                )
        return self._recompile(self.graph, replace(self.options, **changes))

    def time_launches(
        self, feeds: Mapping[str, Any] | Sequence[Mapping[str, Any]], steps: int
    ) -> clock.Times:
        """Runs `steps` steps and times each launch by timestamps; see `runtime.clock`."""
        return clock.time_launches(self.stepper(), feeds, steps)

    def time_steps(
        self, feeds: Mapping[str, Any], repeats: int = 20, samples: int = 5
    ) -> list[float]:
        """Device seconds a step, back to back in one pass, a figure for each sample."""
        return clock.time_steps(self.stepper(), feeds, repeats, samples)

    def __repr__(self) -> str:
        launches, waves = len(self.schedule.launches), len(self.schedule.waves)
        return (
            f"<Program {self.name}, {self.kind}: {launches} launches in {waves} waves "
            f"on {self.device.name}, compiled in {self.compile_seconds * 1e3:.0f} ms>"
        )
