"""Running a graph on a device beside the oracle."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from meganeura.compiler import compile_graph
from meganeura.ir.evaluate import evaluate_nodes
from meganeura.ir.graph import Array, Graph, Node
from meganeura.plan import Options
from meganeura.runtime.device import Device, get_device
from meganeura.runtime.program import Program
from meganeura.runtime.store import ParameterStore


def device(name: str = "llvmpipe") -> Device:
    """The device that tests run on: a software adapter, so that every machine agrees."""
    return get_device(name)


def random_feeds(graph: Graph, seed: int = 0) -> dict[str, Array]:
    """Numbers around 0 for floats, small ones for integers."""
    rng = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for node in graph.leaves("input"):
        if node.dtype.is_float:
            feeds[str(node.name)] = rng.normal(size=node.shape).astype(np.float32)
        elif node.dtype.name == "bool":
            feeds[str(node.name)] = rng.integers(0, 2, node.shape).astype(bool)
        else:
            feeds[str(node.name)] = rng.integers(0, 3, node.shape).astype(node.dtype.numpy)
    return feeds


def program(graph: Graph, options: Options, on: Device) -> Program:
    """The graph compiled as it is, with fresh parameters."""

    def plan(source: Graph, chosen: Options) -> Any:
        return compile_graph(source, chosen, on.target)

    return Program(plan(graph, options), on, ParameterStore(on), plan)


def oracle(graph: Graph, feeds: Mapping[str, Array], store: ParameterStore) -> dict[str, Array]:
    """Outputs in float64."""
    values: dict[Node, Any] = {n: feeds[str(n.name)] for n in graph.leaves("input")}
    for leaf in (*graph.leaves("parameter"), *graph.leaves("state")):
        store.held(leaf)
        values[leaf] = store.read([str(leaf.name)])[str(leaf.name)]
    known = evaluate_nodes(graph.roots, values, np.float64)
    return {name: known[node] for name, node in graph.outputs}


def check(
    graph: Graph, on: Device, *, seed: int = 0, tolerance: float = 2e-5, **options: Any
) -> Program:
    """Runs the graph on a device and compares every output with float64, elementwise."""
    made = program(graph, Options(**options), on)
    feeds = random_feeds(graph, seed)
    want = oracle(graph, feeds, made.store)
    result = made(**feeds)
    got = result if isinstance(result, dict) else {graph.outputs[0][0]: result}
    for name, _ in graph.outputs:
        agree(got[name], want[name], tolerance, name)
    return made


def agree(got: Array, want: Array, tolerance: float, name: str = "") -> None:
    """Elementwise agreement relative to the size of the values; exact for integers and bools."""
    assert got.shape == want.shape, name
    if want.dtype.kind != "f":
        np.testing.assert_array_equal(got, want, err_msg=name)
        return
    scale = float(np.max(np.abs(want), initial=0.0))
    bound = tolerance * max(scale if math.isfinite(scale) else 1.0, 1.0)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=bound, err_msg=name)
