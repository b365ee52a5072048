/** The pane beside the picture: the facts of the selection, its WGSL and the user's line. */

import { around, cellLines, codeBlock, wgslLines } from "./code.js";
import { asideOf, type Child, growOf, h, leadOf, listOf, noteOf } from "./dom.js";
import { bytes, count, figures, flops, plural, shape, time } from "./format.js";
import type { KernelView, NodeView } from "./model.js";
import type { Store } from "./store.js";

export function facts(pairs: [string, Child][]): HTMLElement {
  return h("dl", { class: "facts" }, pairs.map(([label, value]) => h("div", {}, h("dt", {}, label), h("dd", {}, value))));
}

export function kernelFacts(store: Store, kernel: KernelView): [string, Child][] {
  const moved = kernel.reads + kernel.writes;
  const groups = kernel.grid.reduce((a, b) => a * b, 1);
  const lanes = kernel.workgroup.reduce((a, b) => a * b, 1);
  const row = store.timings.rows.find((r) => r.kernel === kernel.id);
  const [low, high] = [row?.p5 ?? kernel.p5_us, row?.p95 ?? kernel.p95_us];
  const spread = low !== null && high !== null ? `, ${time(low)}–${time(high)}` : "";
  const measured = store.median(kernel);
  return [
    ["tile", kernel.tile || "–"],
    ["grid", `${plural(groups, "workgroup")} × ${plural(lanes, "invocation")}`],
    ["workgroup memory", `${bytes(kernel.workgroup_bytes)} of ${bytes(kernel.workgroup_limit)}`],
    ["work", `${flops(kernel.flops)}, ${figures(moved ? kernel.flops / moved : 0)} flop/B`],
    ["reads · writes", `${bytes(kernel.reads)} · ${bytes(kernel.writes)}`],
    ["registers, assumed", String(kernel.registers)],
    ["unfused it would move", bytes(kernel.unfused)],
    measured !== null
      ? ["median, p5–p95", h("b", {}, `${time(measured)}${spread}`)]
      : ["predicted, not measured", kernel.predicted_us === null ? "–" : time(kernel.predicted_us)],
    ...(kernel.limited_by ? [["limited by", h("b", {}, kernel.limited_by)] as [string, Child]] : []),
    ["reads", kernel.inputs.map((t) => t.label).join(", ") || "nothing"],
    ["writes", kernel.outputs.map((t) => t.label).join(", ") + (kernel.in_place.length ? ", in place" : "")],
  ];
}

function nodeFacts(store: Store, node: NodeView): [string, Child][] {
  return [
    ["operation", node.composite ? `${node.op}, part of ${node.composite}` : node.op],
    ["shape", `${shape(node.shape)} ${node.dtype}`],
    ["bytes", bytes(node.bytes)],
    ["work", flops(node.flops)],
    ["made by", store.place(node.source)],
    ["reads", node.inputs.map((i) => store.node(i)?.label ?? "").join(", ") || "nothing"],
  ];
}

export function selectionTitle(store: Store): HTMLElement {
  const kernel = store.selectedKernel;
  const node = store.selectedNode;
  if (!kernel) {
    const what = node ? (node.leaf ?? "node") : "";
    return h("h3", {}, h("b", {}, node?.label ?? ""), ` ${what}`);
  }
  const line = node?.source ? ` · line ${node.source.line}` : "";
  return h("h3", {}, h("b", {}, kernel.id), ` ${kernel.label}`, asideOf(`${kernel.phase}${line}`));
}

/** What to read first when nothing is chosen. */
function overview(store: Store): Child[] {
  const { kernels } = store.view;
  const measured = kernels.some((k) => (store.median(k) ?? k.predicted_us) !== null);
  const slowest = [...kernels].sort((a, b) => (store.median(b) ?? b.predicted_us ?? 0) - (store.median(a) ?? a.predicted_us ?? 0));
  return [
    h("h3", {}, "Choose a kernel", asideOf("click, or arrow keys")),
    leadOf("A box is one launch; the pills in it are the nodes that it computes without writing them to memory."),
    h("h4", {}, measured ? "The slowest launches" : "The launches"),
    listOf(slowest.slice(0, 5).map((k) =>
        h(
          "button",
          { class: "row", onclick: () => store.select(k.id) },
          h("span", { class: `chip ${k.kind} ${k.phase}`, "aria-hidden": "true" }),
          h("b", {}, k.id),
          growOf(k.label),
          h("span", {}, time(store.median(k) ?? k.predicted_us)),
        ),
      ),
    ),
    h("h4", {}, "Keys"),
    facts(KEYS.slice(0, 6).map(([key, what]) => [what, h("kbd", {}, key)])),
  ];
}

export const KEYS: [string, string][] = [
  ["← → ↑ ↓", "walk the graph along its edges"],
  ["Enter", "open the kernel's WGSL"],
  ["Esc", "back"],
  ["/", "search; n and ⇧n step through the matches"],
  ["+ − 0", "zoom, fit"],
  ["1 … 8", "tabs"],
  ["[ ]", "previous and next pass"],
  ["t", "table"],
  ["?", "these keys"],
];

export function details(store: Store): HTMLElement {
  const pane = h("aside", { class: "pane", "aria-label": "Details of the selection" });
  const kernel = store.selectedKernel;
  const node = store.selectedNode;
  if (!kernel && !node) {
    pane.classList.add("brief");
    pane.append(h("section", {}));
    for (const child of overview(store)) pane.firstElementChild?.append(child as Node);
    return pane;
  }
  const chosenNode = store.selection.startsWith("n") ? node : undefined;
  pane.append(h("section", {}, selectionTitle(store), kernel ? facts(kernelFacts(store, kernel)) : null));
  if (chosenNode) pane.append(h("section", {}, h("h4", {}, `Node ${chosenNode.label}`), facts(nodeFacts(store, chosenNode))));
  if (kernel) pane.append(wgslSection(store, kernel));
  if (node?.source) pane.append(cellSection(store, node));
  return pane;
}

function wgslSection(store: Store, kernel: KernelView): HTMLElement {
  const all = wgslLines(store, kernel);
  const some = around(all, 7, 13);
  const range = some.length ? `lines ${some[0]?.number}–${some[some.length - 1]?.number} of ${count(all.length)}` : "";
  return h(
    "section",
    { class: "flush" },
    h(
      "h4",
      {},
      "WGSL",
      noteOf(range),
      asideOf(copyButton(() => store.wgsl(kernel)), linkButton("open in Kernels ↵", () => store.show("kernels"))),
    ),
    codeBlock(store, some, "wgsl", `WGSL of ${kernel.id}`),
  );
}

export function cellSection(store: Store, node: NodeView, whole = false): HTMLElement {
  const source = node.source;
  if (!source) return h("section", {});
  const all = cellLines(store, source);
  const at = all.findIndex((l) => l.marked);
  const some = whole ? all : all.slice(Math.max(0, at - 1), at + 2);
  return h("section", { class: "flush" }, h("h4", {}, `Your cell ${source.cell.replace(/^In/, "")}`), codeBlock(store, some, "python", "Your cell"));
}

export function linkButton(label: string, action: () => void): HTMLButtonElement {
  return h("button", { class: "link", onclick: action }, label);
}

export function copyButton(value: () => string): HTMLButtonElement {
  const button = linkButton("copy", () => {
    void navigator.clipboard?.writeText(value()).then(() => {
      button.textContent = "copied";
    });
  });
  return button;
}
