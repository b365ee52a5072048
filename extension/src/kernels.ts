/** The kernels: WGSL beside its nodes and the user's cell; hovering any of the three lights the others. */

import { codeBlock, wgslLines } from "./code.js";
import { cellSection, copyButton, facts, kernelFacts } from "./details.js";
import { asideOf, dimOf, growOf, h, noteOf } from "./dom.js";
import { count, shape, time } from "./format.js";
import type { KernelView } from "./model.js";
import type { Store, Topic } from "./store.js";

export class KernelsTab {
  readonly el = h("div", { class: "three" });
  private shown = "";

  constructor(private readonly store: Store) {
    this.draw();
  }

  update(topic: Topic): void {
    if (topic === "view" || topic === "selection" || topic === "tab") this.draw();
  }

  private draw(): void {
    const kernel = this.store.shownKernel;
    if (!kernel) {
      this.el.replaceChildren(h("p", { class: "empty" }, "This program launches no kernel."));
      return;
    }
    const old = this.el.querySelector<HTMLElement>(".code");
    const top = old && this.shown === kernel.id ? old.scrollTop : null;
    this.el.replaceChildren(this.list(kernel), this.source(kernel), this.meaning(kernel));
    const code = this.el.querySelector<HTMLElement>(".source .code");
    if (code && top !== null) code.scrollTop = top;
    const mark = code?.querySelector<HTMLElement>(".mark") ?? code?.querySelector<HTMLElement>(".linked");
    if (code && mark && (top === null || !within(code, mark))) requestAnimationFrame(() => (code.scrollTop = mark.offsetTop - code.offsetTop - code.clientHeight / 3));
    this.shown = kernel.id;
  }

  private list(chosen: KernelView): HTMLElement {
    const { store } = this;
    const longest = Math.max(...store.view.kernels.map((k) => store.median(k) ?? k.predicted_us ?? 0), 1e-9);
    const rows = store.view.kernels.map((k) => {
      const t = store.median(k) ?? k.predicted_us;
      const bar = h("span", { class: store.median(k) === null ? "bar hollow" : "bar", style: `width:${((t ?? 0) / longest) * 100}%` });
      return h(
        "button",
        { class: "row", role: "option", "aria-selected": String(k === chosen), onclick: () => store.select(k.id) },
        h("span", { class: `chip ${k.kind} ${k.phase}`, "aria-hidden": "true" }),
        h("b", {}, k.id),
        growOf(k.label, h("span", { class: "track", "aria-hidden": "true" }, bar)),
        h("span", {}, t === null ? "" : time(t)),
      );
    });
    return h("section", { class: "list scroll", role: "listbox", "aria-label": "kernels in launch order" }, h("h3", {}, "Kernels", asideOf("in launch order")), rows);
  }

  private source(kernel: KernelView): HTMLElement {
    const lines = wgslLines(this.store, kernel);
    const module = this.store.wgsl(kernel);
    const sharing = this.store.view.kernels.filter((k) => k.wgsl === kernel.wgsl).length;
    return h(
      "section",
      { class: "source flush" },
      h(
        "h3",
        {},
        h("b", {}, kernel.id),
        " WGSL",
        noteOf(`${count(lines.length)} lines${sharing > 1 ? `, shared by ${sharing} kernels` : ""}`),
        asideOf(copyButton(() => module)),
      ),
      codeBlock(this.store, lines, "wgsl", `WGSL of ${kernel.id}`),
    );
  }

  private meaning(kernel: KernelView): HTMLElement {
    const { store } = this;
    const node = store.selectedNode?.kernel === kernel.id ? store.selectedNode : store.node(kernel.outputs[0]?.node ?? kernel.nodes[0] ?? -1);
    const chosen = store.selection.startsWith("n") ? store.selection : "";
    const shown = kernel.nodes.filter((id) => !store.node(id)?.hidden || chosen === `n${id}`);
    const nodes = shown.map((id) => {
      const n = store.node(id);
      return (
        n &&
        h(
          "button",
          { class: "row", "data-n": id, "aria-pressed": String(chosen === `n${id}`), onclick: () => store.select(`n${id}`) },
          h("b", {}, n.label),
          h("span", { class: "grow dim" }, `${shape(n.shape)} ${n.dtype}`),
          dimOf(n.source ? `line ${n.source.line}` : ""),
        )
      );
    });
    return h(
      "aside",
      { class: "pane", "aria-label": "What this kernel computes" },
      h("section", {}, h("h3", {}, kernel.label, asideOf(kernel.phase)), facts(kernelFacts(store, kernel))),
      h("section", {}, h("h4", {}, "Nodes", noteOf(`${kernel.nodes.length} in this launch${shown.length < kernel.nodes.length ? `, ${kernel.nodes.length - shown.length} of them views and numbers` : ""}`)), h("div", { class: "list nodes" }, nodes)),
      node?.source ? cellSection(store, node, true) : null,
    );
  }
}

function within(code: HTMLElement, row: HTMLElement): boolean {
  const y = row.offsetTop - code.offsetTop;
  return y >= code.scrollTop && y <= code.scrollTop + code.clientHeight - 20;
}
