"""The compiler, read top to bottom: a graph becomes a plan."""

from __future__ import annotations

import time
from dataclasses import replace

from meganeura.codegen.emit import emit
from meganeura.errors import OptionError
from meganeura.fuse.fuse import fuse
from meganeura.fuse.lower import lower
from meganeura.ir.graph import Graph
from meganeura.ir.mode import bind
from meganeura.ir.spec import check_names
from meganeura.memory.plan import plan_memory
from meganeura.plan import Options, PassRecord, Plan, ProgramKind
from meganeura.rewrite import rewrite, simplify
from meganeura.runtime.device import Device, get_device
from meganeura.runtime.program import Program
from meganeura.runtime.store import ParameterStore
from meganeura.schedule.merge import merge
from meganeura.schedule.waves import schedule
from meganeura.target import Target
from meganeura.tile.table import split_parts, tile
from meganeura.trace import Event, watch


def compile_graph(
    source: Graph,
    options: Options,
    target: Target,
    name: str = "program",
    kind: ProgramKind = "inference",
) -> Plan:
    """A graph of operations -> a plan of launches, for one target under the given options."""
    records: list[PassRecord] = []

    def record(event: Event) -> None:
        records.append(PassRecord.of(event))

    start = time.perf_counter()
    with watch(record):
        graph = simplify(source)
        graph = rewrite(graph, rules_off=options.rules_off, enabled=options.rewrite)
        graph = lower(graph, target, split_parts)
        graph = simplify(graph)
        fused = fuse(graph, target, options.fuse)
        tiles = tile(fused.regions, target, options.tile, fused.names)
        arms = merge(fused.regions, tiles, fused.updates, target, options.fuse)
        kernels = emit(fused.regions, tiles, arms, target)
        launches = schedule(kernels, fused.updates)
        outputs = frozenset(node for _, node in fused.holders)
        targets = {value: leaf for leaf, value in fused.updates}
        memory = plan_memory(launches, outputs, targets, options.alias)
    return Plan(
        name=name,
        kind=kind,
        source=source,
        graph=fused.graph,
        inputs=source.leaves("input"),
        options=options,
        target=target,
        passes=tuple(records),
        schedule=launches,
        memory=memory,
        holders=fused.holders,
        updates=fused.updates,
        seconds=time.perf_counter() - start,
    )


def _check_tiles(graph: Graph, options: Options) -> None:
    """Tiles are forced by names of the user's graph; a training step may lack some of them."""
    known = {n.name for n in graph.nodes if n.op.kind != "leaf"} | {n for n, _ in graph.outputs}
    for name in options.tile:
        if name not in known:
            names = ", ".join(sorted(str(n) for n in known if n is not None))
            raise OptionError(
                f"no tensor {name!r} to tile", expected=f"one of: {names}", got=repr(name)
            )


def compile_program(
    graph: Graph,
    *,
    name: str = "program",
    kind: ProgramKind = "inference",
    options: Options | None = None,
    device: str | Device | None = None,
    store: ParameterStore | None = None,
    earlier: tuple[PassRecord, ...] = (),
) -> Program:
    """A graph -> a program on a device, which can be called.

    Without a store it gets parameters of its own. `earlier` are passes that made the graph, which
    the program shows before its own.
    """
    opened = get_device(device) if store is None else store.device
    store = store or ParameterStore(opened)

    def planned(source: Graph, changed: Options) -> Plan:
        bound = bind(source, training=False) if kind == "inference" else source
        check_names(bound)
        if kind == "inference":
            _check_tiles(bound, changed)
        plan = compile_graph(bound, changed, opened.target, name, kind)
        return replace(plan, source=source, passes=(*earlier, *plan.passes))

    return Program(planned(graph, options or Options()), opened, store, planned)
