"""Repeated blocks: found, solved once, stamped with their own places and names; results stay."""

from __future__ import annotations

from typing import Any

import pytest

from meganeura import trace
from meganeura.ir import build, composites
from meganeura.ir.dtypes import f32, u32
from meganeura.ir.graph import Graph, Node
from meganeura.ir.spec import check
from meganeura.ir.text import text
from meganeura.rewrite import default_cost, rewrite, simplify
from meganeura.rewrite.outline import find_blocks
from meganeura.trace import Event, watch
from tests.pure.rewrite.graphs import difference, transformer


def total(graph: Graph) -> float:
    return sum(map(default_cost, graph.nodes))


def parts_of(graph: Graph) -> tuple[Graph, list[dict[str, Any]], dict[str, Any]]:
    events: list[Event] = []
    with watch(events.append):
        after = rewrite(graph)
    notes = next(e.notes for e in events if e.stage == "rewrite")
    return after, notes["parts"], notes


@pytest.mark.parametrize(("layers", "training"), [(10, False), (4, True), (6, True)])
def test_results_and_cost_are_those_of_the_whole(layers: int, training: bool) -> None:
    graph = simplify(transformer(layers, training))
    assert find_blocks(graph)
    after = rewrite(graph)
    whole = rewrite(graph, outline=False)
    check(after)
    assert difference(graph, after) < 1e-6
    assert difference(graph, whole) < 1e-6
    assert total(after) < total(graph)
    assert total(after) <= total(whole) * 1.1


def test_layers_are_one_block() -> None:
    graph = simplify(transformer(12))
    (block,) = find_blocks(graph)
    assert len(block.copies) in (11, 12)
    sizes = {len(copy.nodes) for copy in block.copies}
    assert len(sizes) == 1
    assert len(block.exports) == 1  # the residual stream
    nodes = [n for copy in block.copies for n in copy.nodes]
    assert len(set(nodes)) == len(nodes)


def test_copies_differ_only_in_what_they_read() -> None:
    for block in find_blocks(simplify(transformer(5, training=True))):
        first = block.copies[0]
        for copy in block.copies[1:]:
            pairs = zip(first.nodes, copy.nodes, strict=True)
            assert all(a.op is b.op and a.shape == b.shape for a, b in pairs)
            assert [n.shape for n in copy.outside] == [n.shape for n in first.outside]


def test_twice_the_layers_are_the_same_work_for_the_rules() -> None:
    _, few, _ = parts_of(simplify(transformer(12)))
    after, many, notes = parts_of(simplify(transformer(24)))
    assert [p["enodes"] for p in few[1:]] == [p["enodes"] for p in many[1:]]
    assert max(p["copies"] for p in many) >= 23
    row = next(r for r in notes["rules"] if r["applied"])
    assert row["applied"] >= 23
    assert len(row["matches"]) < row["applied"]
    check(after)


def test_two_runs_give_the_same_text() -> None:
    first, second = (rewrite(simplify(transformer(8, training=True))) for _ in range(2))
    assert text(first) == text(second)


def test_small_graphs_are_solved_whole() -> None:
    assert find_blocks(simplify(transformer(2))) == []


def tower(layers: int, names: bool = True) -> Graph:
    """Layers with a rule to apply in each: x / 4 becomes x * 0.25."""
    x = build.input_("x", (4, 8))
    for layer in range(layers):
        with trace.scope(f"layer{layer}"):
            w = build.parameter(f"w{layer}", (8, 8), None)
            y = build.div(build.exp(build.tanh(build.matmul(x, w))), 4.0)
            y = y.with_name(f"quarter{layer}") if names else y
            z: Node = composites.layer_norm(y)
            x = build.add(x, composites.gelu(z))
    return Graph((("y", x),))


def test_each_copy_keeps_its_names_scopes_and_lines() -> None:
    graph = simplify(tower(40))
    assert find_blocks(graph)
    after = rewrite(graph)
    check(after)
    assert difference(graph, after) < 1e-6
    named = {n.origin.name: n for n in after.nodes if n.origin.name is not None}
    for layer in range(40):
        node = named[f"quarter{layer}"]
        assert node.op.name == "mul"
        assert node.origin.scope == (f"layer{layer}",)
        assert node.origin.source is not None
        assert "build.div" in node.origin.source.text
    assert not [n for n in after.nodes if n.op.name == "input" and n.name != "x"]


def test_inner_values_that_are_read_outside_survive() -> None:
    graph = tower(40)
    inner = [n for n in graph.nodes if n.origin.name in ("quarter7", "quarter23")]
    seen = simplify(Graph((*graph.outputs, *((str(n.name), n) for n in inner))))
    after = rewrite(seen)
    assert difference(seen, after) < 1e-6
    assert [name for name, _ in after.outputs] == ["y", "quarter7", "quarter23"]


def test_layers_with_random_numbers_of_their_own_are_copies() -> None:
    seed = build.input_("meganeura.seed", (), u32)
    x = build.input_("x", (4, 8))
    for layer in range(60):
        bits = build.random_bits(seed, x.shape, layer)
        keep = build.lt(build.cast(bits, f32), 2.0**31)
        x = build.tanh(build.div(build.where(keep, build.exp(x), 0.0), 4.0))
        x = build.add(x, build.mean(build.mul(x, x), -1, keepdims=True))
    graph = simplify(Graph((("y", x),)))
    assert find_blocks(graph)
    after = rewrite(graph)
    streams = [n.attr("stream") for n in after.nodes if n.op.name == "random"]
    assert sorted(streams) == list(range(60))
    assert difference(graph, after) < 1e-6
