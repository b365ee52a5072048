"""The e-graph alone: hash-consing, union, congruence, facts, order."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from meganeura.ir import build
from meganeura.ir.graph import Node, topological
from meganeura.rewrite.egraph import EGraph


def graph_of(*roots: Node) -> EGraph:
    graph = EGraph()
    graph.add_graph(topological(roots))
    return graph


def same(graph: EGraph, a: Node, b: Node) -> bool:
    return graph.find(graph.class_of[a]) == graph.find(graph.class_of[b])


def inputs(names: str) -> list[Node]:
    return [build.input_(name, (3,)) for name in names]


def test_equal_terms_are_one_class_also_with_operands_exchanged() -> None:
    a, b = inputs("ab")
    first, second = build.add(a, b).with_name("first"), build.add(b, a).with_name("second")
    third, fourth = build.sub(a, b), build.sub(b, a)
    graph = graph_of(first, second, third, fourth)
    assert same(graph, first, second)
    assert not same(graph, third, fourth)


def test_union_makes_readers_equal_at_any_height() -> None:
    a, b = inputs("ab")
    left, right = (build.tanh(build.add(build.exp(n), 1.0)) for n in (a, b))
    graph = graph_of(left, right)
    assert not same(graph, left, right)
    assert graph.union(graph.class_of[a], graph.class_of[b])
    assert not same(graph, left, right)  # deferred
    graph.rebuild()
    assert same(graph, left, right)
    assert not graph.union(graph.class_of[a], graph.class_of[b])


def test_a_class_may_contain_its_own_reader() -> None:
    (a,) = inputs("a")
    negation = build.neg(a)
    left, right = build.exp(build.neg(negation)), build.exp(a)
    graph = graph_of(left, right)
    graph.union(graph.class_of[negation], graph.class_of[a])
    graph.rebuild()
    assert same(graph, left, right)


def test_what_is_learnt_of_a_class_reaches_its_readers() -> None:
    a, b = inputs("ab")
    more, power = build.add(a, 1.0), build.exp(b)
    graph = graph_of(more, power)
    assert graph.cls(graph.class_of[more]).facts.lo == float("-inf")
    graph.union(graph.class_of[a], graph.class_of[power])
    graph.rebuild()
    assert graph.cls(graph.class_of[more]).facts.lo == 1.0 - 2.0**-22


def test_each_live_enode_is_known_under_its_key_and_read_by_its_operands() -> None:
    a, b, c = inputs("abc")
    terms = [build.mul(build.add(x, y), z) for x, y, z in itertools.permutations((a, b, c))]
    graph = graph_of(*terms)
    graph.union(graph.class_of[a], graph.class_of[c])
    graph.rebuild()
    keys = set()
    for enode in graph.enodes():
        assert enode.alive
        assert graph.find(enode.owner) == enode.owner
        children = tuple(map(graph.find, enode.children))
        key = (enode.op, enode.attrs, tuple(sorted(children)))
        assert key not in keys
        keys.add(key)
        for child in children:
            assert any(r is enode for r in graph.classes[child].readers if r.alive)


class Naive:
    """Congruence by brute force: partitions of all terms, refined until nothing changes."""

    def __init__(self, nodes: list[Node]) -> None:
        self.nodes = nodes
        self.label = {node: index for index, node in enumerate(nodes)}

    def union(self, a: Node, b: Node) -> None:
        old, new = self.label[b], self.label[a]
        for node in self.nodes:
            if self.label[node] == old:
                self.label[node] = new

    def close(self) -> None:
        changed = True
        while changed:
            changed = False
            for a, b in itertools.combinations(self.nodes, 2):
                if self.label[a] != self.label[b] and self._alike(a, b):
                    self.union(a, b)
                    changed = True

    def _alike(self, a: Node, b: Node) -> bool:
        if a.op is not b.op or a.attrs != b.attrs or not a.inputs:
            return False
        left = [self.label[n] for n in a.inputs]
        right = [self.label[n] for n in b.inputs]
        exchanged = "commutative" in a.op.traits and left == right[::-1]
        return left == right or exchanged


@st.composite
def terms_and_unions(draw: st.DrawFn) -> tuple[list[Node], list[tuple[Node, Node]]]:
    nodes = inputs("abcd")
    for _ in range(draw(st.integers(1, 14))):
        a, b = draw(st.sampled_from(nodes)), draw(st.sampled_from(nodes))
        made = draw(
            st.sampled_from(
                (build.neg(a), build.exp(a), build.add(a, b), build.sub(a, b), build.mul(a, b))
            )
        )
        if made not in nodes:
            nodes.append(made)
    pair = st.tuples(st.sampled_from(nodes), st.sampled_from(nodes))
    return nodes, draw(st.lists(pair, min_size=1, max_size=6))


@settings(max_examples=200, deadline=None)
@given(terms_and_unions(), st.booleans())
def test_congruence_is_what_brute_force_finds(
    drawn: tuple[list[Node], list[tuple[Node, Node]]], at_once: bool
) -> None:
    nodes, unions = drawn
    graph, naive = graph_of(*nodes), Naive(nodes)
    naive.close()
    for a, b in unions:
        graph.union(graph.class_of[a], graph.class_of[b])
        if at_once:
            graph.rebuild()
        naive.union(a, b)
    graph.rebuild()
    naive.close()
    for a, b in itertools.combinations(nodes, 2):
        assert same(graph, a, b) == (naive.label[a] == naive.label[b])
