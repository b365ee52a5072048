"""The drawing module in a bare page of headless Chromium, with a model in place of the kernel."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page

from meganeura.notebook.pictures import pictures
from tests.notebook import bare_page as bare

LIMIT = 80_000


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with bare.chromium() as opened:
        yield opened


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A page in which nothing may go wrong and from which no request may go out."""
    with bare.page(browser) as (opened, trouble):
        yield opened
        assert trouble == []


@pytest.fixture
def view() -> Any:
    return bare.fixture()


def trait(page: Page, name: str) -> Any:
    return page.evaluate("(name) => model.traits[name]", name)


def strip(page: Page) -> str:
    return page.locator(".strip p").inner_text()


def test_the_module_is_small() -> None:
    assert bare.MODULE.stat().st_size <= LIMIT


@pytest.mark.parametrize("tab", bare.TABS)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_tab_is_drawn_and_ends_in_its_sentence(
    page: Page, view: Any, tab: str, theme: str
) -> None:
    bare.boot(page, view, theme=theme, tab=tab)
    chosen = page.get_by_role("tab", selected=True)
    assert chosen.inner_text().lower() == tab
    assert page.locator(".mg").get_attribute("data-theme") == theme
    assert len(page.get_by_role("tabpanel").inner_text()) > 100
    expected = view["passes"][4]["sentence"] if tab == "passes" else view["sentences"][tab]
    if tab == "kernels":
        assert strip(page)
    else:
        assert strip(page) == " ".join(expected)


def test_a_click_on_a_kernel_selects_it_everywhere(page: Page, view: Any) -> None:
    bare.boot(page, view)
    page.get_by_role("button", name="k7, matmul").click(position={"x": 20, "y": 10})
    assert trait(page, "selection") == "k7"
    assert page.evaluate("model.saves") == 1
    pane = page.get_by_role("complementary")
    assert pane.locator("h3").inner_text().split()[:2] == ["k7", "matmul"]
    assert "const BM = 32u;" in pane.locator(".code").first.inner_text()
    for tab in ("Schedule", "Timings", "Table", "Kernels"):
        page.get_by_role("tab", name=tab).click()
        assert page.locator(".ring, tr.chosen, [aria-selected=true] b, .chosen").count() >= 1
    assert page.locator(".source h3").inner_text().split()[:2] == ["k7", "WGSL"]


def test_hovering_a_line_of_wgsl_lights_its_nodes_and_the_line_of_the_cell(
    page: Page, view: Any
) -> None:
    bare.boot(page, view, tab="kernels", selection="k0")
    page.locator(".source .ln", has_text="let t1").hover()
    lit = page.locator(".hl")
    assert page.locator(".nodes .hl").inner_text().startswith("+ b")
    assert any("mg.relu" in text for text in lit.all_inner_texts())
    page.locator(".nodes .row", has_text="relu").hover()
    assert page.locator(".source .ln.hl").inner_text().strip().startswith("23")


def test_a_line_of_wgsl_selects_its_node(page: Page, view: Any) -> None:
    bare.boot(page, view, tab="kernels", selection="k0")
    page.locator(".source .ln", has_text="let t1").click()
    node = next(i for i, n in enumerate(view["nodes"]) if n["label"] == "+ b₁")
    assert trait(page, "selection") == f"n{node}"
    assert page.locator(".source .mark .badge").inner_text() == "① + b₁"


def test_keys_lead_from_the_graph_to_the_wgsl_and_back(page: Page, view: Any) -> None:
    bare.boot(page, view)
    page.locator("svg.graph").focus()
    page.keyboard.press("ArrowRight")
    assert trait(page, "selection") == "k0"
    page.keyboard.press("ArrowRight")
    assert trait(page, "selection") == "k1"
    page.keyboard.press("ArrowLeft")
    assert trait(page, "selection") == "k0"
    page.keyboard.press("ArrowDown")
    assert trait(page, "selection") != "k0"
    page.keyboard.press("Enter")
    assert trait(page, "tab") == "kernels"
    page.locator(".code").first.focus()
    page.keyboard.press("Escape")
    assert trait(page, "tab") == "graph"
    page.locator("svg.graph").focus()
    for number, tab in enumerate(bare.TABS, start=1):
        page.get_by_role("tab", selected=True).focus()
        page.keyboard.press(str(number))
        assert trait(page, "tab") == tab


def test_brackets_step_through_the_passes(page: Page, view: Any) -> None:
    bare.boot(page, view, tab="passes")
    page.locator(".station").first.focus()
    assert page.locator(".headline b").inner_text().split() == ["5", "rewrite"]
    page.keyboard.press("]")
    assert page.locator(".headline b").inner_text().split() == ["6", "fuse"]
    page.keyboard.press("[")
    page.keyboard.press("[")
    assert page.locator(".headline b").inner_text().split() == ["4", "simplify"]


def test_search_counts_and_walks_its_matches(page: Page, view: Any) -> None:
    bare.boot(page, view)
    page.locator("svg.graph").focus()
    page.keyboard.press("/")
    page.keyboard.type("relu")
    assert "3 matches" in page.locator(".toolbar .aside").inner_text()
    page.keyboard.press("Enter")
    assert trait(page, "selection") == "k0"
    page.keyboard.press("Enter")
    assert trait(page, "selection") == "k7"


def test_a_question_mark_lists_the_keys(page: Page, view: Any) -> None:
    bare.boot(page, view)
    page.locator("svg.graph").focus()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    assert "walk the graph" in dialog.inner_text()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0


def test_a_toggle_writes_the_option(page: Page, view: Any) -> None:
    bare.boot(page, view, options={"fuse": True, "rewrite": True})
    switch = page.get_by_role("switch", name="fuse")
    assert switch.get_attribute("aria-checked") == "true"
    switch.click()
    assert trait(page, "options") == {"fuse": False, "rewrite": True}
    bare.push(page, "status", {"state": "compiling", "pass": "tile", "index": 7, "count": 10})
    assert "tile, pass 7 of 10" in page.get_by_role("status").inner_text()
    assert page.locator(".body.stale").count() == 1


def test_an_error_shows_the_line_and_keeps_the_last_program(page: Page, view: Any) -> None:
    bare.boot(page, view)
    status = {
        "state": "error",
        "title": "shapes do not fit",
        "where": "In[3], line 4",
        "code": "h = mg.relu(x @ w1)",
        "caret": [12, 18],
        "details": ["expected: equal inner sizes"],
        "hint": "x @ w1.T",
    }
    bare.push(page, "status", status)
    text = page.get_by_role("status").inner_text()
    assert "⚠ shapes do not fit" in text and "Try x @ w1.T" in text
    assert page.locator(".banner pre").inner_text().split("\n")[1] == " " * 12 + "^^^^^^"
    assert page.locator("svg.graph").is_visible()


def test_the_selection_survives_a_recompile(page: Page, view: Any) -> None:
    bare.boot(page, view, selection="")
    page.get_by_role("button", name="k7, matmul").click(position={"x": 20, "y": 10})
    changed = json.loads(json.dumps(view).replace('"k7"', '"k3x"'))
    bare.push(page, "view", changed)
    assert page.locator("aside h3 b").first.inner_text() == "k3x"


def test_a_run_moves_the_loss_the_header_and_the_times(page: Page, view: Any) -> None:
    bare.boot(page, view, tab="loss")
    run = {
        "name": "run 3",
        "detail": "adamw 3e-3",
        "status": "running",
        "step": 120,
        "steps": 400,
        "rate": 14080.0,
        "points": [[s, 2.3 / s] for s in range(1, 121)],
        "curves": {"accuracy": [[s, 1 - 1 / s] for s in range(1, 121)]},
    }
    live = {
        "run": run,
        "elapsed_s": 0.01,
        "left_s": 0.02,
        "sentence": ["Learning:", "2.3 to 0.02."],
    }
    bare.push(page, "live", live)
    header = page.locator(".head").inner_text()
    assert "120 of 400" in header and "14,080 steps/s" in header
    assert page.get_by_role("progressbar").get_attribute("aria-valuenow") == "30"
    assert strip(page) == "Learning: 2.3 to 0.02."
    drawn = page.get_by_role("img", name="loss:").get_attribute("aria-label") or ""
    assert "run 3 0.019 at step 120" in drawn
    timings = copy.deepcopy(view["timings"])
    timings["rows"][0]["median"] = 9.87
    bare.push(page, "live", {"timings": timings})
    page.get_by_role("tab", name="Graph").click()
    assert "9.87" in page.locator("[data-time=k0]").inner_html()


def test_without_any_measurement_nothing_is_filled(page: Page, view: Any) -> None:
    for kernel in view["kernels"]:
        kernel.update(median_us=None, p5_us=None, p95_us=None)
    for row in view["timings"]["rows"]:
        row.update(dict.fromkeys(("median", "p5", "p25", "p75", "p95")))
    for launch in view["schedule"]["launches"]:
        launch.update(measured=False, start_us=None, duration_us=None)
    view["header"]["step_us"] = None
    bare.boot(page, view, tab="timings")
    assert page.locator(".ink-dot").count() == 0
    assert page.locator(".predicted-dot").count() == 12
    page.get_by_role("tab", name="Schedule").click()
    assert "not measured" in page.locator(".main h3").first.inner_text()
    assert page.locator(".bar-mark.hollow").count() == 12


@pytest.mark.parametrize(
    "name",
    [
        "<img src=x onerror=hacked=1>",
        "</style><script>hacked=1</script>",
        "${hacked=1}",
        "梯度下降",
        "مرحبا",
        "x" * 10_000,
    ],
    ids=["img", "script", "template", "chinese", "arabic", "long"],
)
def test_names_are_shown_as_text(page: Page, view: Any, name: str) -> None:
    text = json.dumps(view)
    for known in ("hidden.w", "matmul + bias + relu", "mlp", "relu", "The logarithm of a quotient"):
        text = text.replace(json.dumps(known)[1:-1], json.dumps(name)[1:-1])
    bare.boot(page, json.loads(text), selection="k0")
    for tab in range(8):
        page.get_by_role("tab").nth(tab).click()
        assert page.evaluate("window.hacked") is None
        assert page.locator(".mg img, .mg script").count() == 0
    assert page.locator(".head h2").inner_text() == name
    assert page.evaluate("document.documentElement.scrollWidth") <= 1400


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        (None, "Nothing is compiled yet."),
        ({}, "Nothing is compiled yet."),
        ({"version": 2}, "This drawing has version 2; this extension reads version 1."),
        ({"version": 1, "header": {}}, "This drawing is damaged: nodes,"),
    ],
)
def test_what_cannot_be_drawn_says_so(page: Page, view: Any, expected: str) -> None:
    bare.boot(page, view)
    assert expected in page.locator(".mg").inner_text()


def test_the_first_view_may_come_later(page: Page, view: Any) -> None:
    bare.boot(page, None)
    bare.push(page, "view", view)
    assert page.locator("svg.graph").is_visible()


def test_the_static_form_needs_no_kernel(page: Page, view: Any) -> None:
    bare.boot(page, view, still=True)
    assert "A saved drawing." in page.get_by_role("status").inner_text()
    assert page.get_by_role("switch").count() == 0
    page.get_by_role("button", name="k0, matmul").click(position={"x": 20, "y": 10})
    assert "208 KiB" in strip(page)
    page.get_by_role("tab", name="Memory").click()
    assert page.locator(".buffer").count() == 8


def test_removal_leaves_nothing_behind(page: Page, view: Any) -> None:
    bare.boot(page, view)
    assert page.evaluate("model.listeners()") > 0
    page.evaluate("remove()")
    assert page.evaluate("model.listeners()") == 0
    assert page.locator("#app > *").count() == 0


def test_keys_do_not_reach_the_notebook(page: Page, view: Any) -> None:
    bare.boot(page, view)
    page.evaluate("document.addEventListener('keydown', (e) => (window.leaked = e.key))")
    page.locator("svg.graph").focus()
    for key in ("d", "a", "x", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert page.evaluate("window.leaked") is None


@pytest.mark.parametrize(
    ("width", "menu"), [(1400, False), (1000, False), (860, True), (600, True)]
)
def test_the_width_is_the_containers(browser: Browser, view: Any, width: int, menu: bool) -> None:
    with bare.page(browser, width) as (page, trouble):
        for tab in bare.TABS:
            bare.boot(page, view, tab=tab, selection="k0")
            assert page.locator("select.menu").is_visible() is menu
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert trouble == []


def test_high_contrast_and_less_motion_are_kept(browser: Browser, view: Any) -> None:
    context = browser.new_context(forced_colors="active", reduced_motion="reduce")
    page = context.new_page()
    bare.boot(page, view, selection="k0")
    style = "(e) => getComputedStyle(e).%s"
    text = page.locator(".mg").evaluate(style % "color")
    assert page.locator(".kernel > .edge").first.evaluate(style % "stroke") == text
    knob = page.locator(".toggle .knob").first
    assert knob.evaluate("(e) => getComputedStyle(e, '::before').transitionDuration") == "0s"
    context.close()


def large(view: Any, layers: int = 400) -> Any:
    """A program of five nodes a kernel in one long chain, by the fixture's shapes."""
    nodes, kernels = [], []
    sample_node, sample = view["nodes"][3], view["kernels"][0]
    for k in range(layers):
        ids = range(5 * k, 5 * k + 5)
        for n in ids:
            extra = {"column": f"layer{k // 40}", "class": "map", "kind": "map"}
            own = {
                "id": n,
                "hidden": False,
                "name": None,
                "phase": "forward",
                "inputs": [n - 1] if n else [],
                "kernel": f"k{k}",
                "leaf": None,
            }
            nodes.append(sample_node | extra | own)
        ends = {"inputs": [{"node": ids[0] - 1, "label": "h", "bytes": 4}] if k else []}
        outputs = [{"node": ids[-1], "label": "h", "bytes": 4}]
        own_kernel: dict[str, Any] = {
            "id": f"k{k}",
            "nodes": list(ids),
            "outputs": outputs,
            "lines": {},
            "in_place": [],
        }
        kernels.append(
            sample | ends | own_kernel | {"scope": f"layer{k // 40}", "phase": "forward"}
        )
    launch = view["schedule"]["launches"][0]
    launches = [launch | {"kernel": f"k{k}", "wave": k, "start_us": 5.0 * k} for k in range(layers)]
    rows = [view["timings"]["rows"][0] | {"kernel": f"k{k}"} for k in range(layers)]
    return view | {
        "nodes": nodes,
        "kernels": kernels,
        "pictures": pictures(nodes, kernels, {"h": 5 * layers - 1}),
        "schedule": {
            "launches": launches,
            "waves": [[k] for k in range(layers)],
            "total_us": 2000.0,
        },
        "memory": view["memory"] | {"placements": [], "live": [0] * layers},
        "timings": view["timings"] | {"rows": rows},
    }


def busy(session: CDPSession) -> float:
    """Seconds of processor time that the page's thread has used: other processes do not count."""
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(m["value"] for m in metrics if m["name"] == "TaskDuration"))


def test_two_thousand_nodes_are_painted_within_half_a_second(page: Page, view: Any) -> None:
    program = large(view)
    times = []
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    for _ in range(3):
        before = busy(session)
        bare.boot(page, program)
        times.append(busy(session) - before)
    assert min(times) <= 0.5
    drawn = page.locator(".kernel").count()
    assert 10 < drawn < 400
    page.locator("svg.graph").focus()
    page.keyboard.press("0")
    assert page.locator(".kernel").count() == 400
    for tab in ("Schedule", "Memory", "Timings", "Table"):
        page.get_by_role("tab", name=tab).click()
        assert page.get_by_role("tabpanel").inner_text()
