/** The table: every fact of the pictures as rows, for reading by ear, by search and by copying. */

import { dimOf, h } from "./dom.js";
import { bytes, figures, flops, shape, time } from "./format.js";
import { table } from "./passes.js";
import type { Store, Topic } from "./store.js";

const MOST_ROWS = 500;

export class TableTab {
  readonly el = h("div", { class: "main pad scroll" });
  private what: "kernels" | "nodes" = "kernels";

  constructor(private readonly store: Store) {
    this.draw();
  }

  update(topic: Topic): void {
    if (topic !== "pass" && topic !== "group") this.draw();
  }

  private draw(): void {
    const choice = (name: "kernels" | "nodes"): HTMLElement =>
      h("button", { "aria-pressed": String(this.what === name), onclick: () => ((this.what = name), this.draw()) }, name);
    const total = this.what === "kernels" ? this.store.view.kernels.length : this.store.nodes.length;
    const note = total > MOST_ROWS ? `the first ${MOST_ROWS} of ${total}` : "";
    const bar = h("div", { class: "toolbar flat" }, h("div", { class: "seg", role: "group" }, choice("kernels"), choice("nodes")), dimOf(note));
    this.el.replaceChildren(bar, this.what === "kernels" ? this.kernels() : this.nodes());
  }

  private kernels(): HTMLElement {
    const { store } = this;
    const kernels = store.view.kernels.slice(0, MOST_ROWS);
    const rows = kernels.map((k) => {
      const launch = store.view.schedule.launches.find((l) => l.kernel === k.id);
      const median = store.median(k);
      return [
        k.id,
        k.label,
        k.kind,
        k.phase,
        launch ? String(launch.wave) : "–",
        median === null ? "–" : time(median),
        k.predicted_us === null ? "–" : time(k.predicted_us),
        flops(k.flops),
        bytes(k.reads),
        bytes(k.writes),
        figures(k.flops / Math.max(1, k.reads + k.writes)),
        k.tile,
        k.inputs.map((t) => t.label).join(", "),
        k.outputs.map((t) => t.label).join(", "),
      ];
    });
    const columns = ["id", "what", "kind", "phase", "wave", "median", "predicted", "work", "reads", "writes", "flop/B", "tile", "inputs", "outputs"];
    const chosen = store.selection ? kernels.findIndex((k) => k.id === store.selectedKernel?.id) : -1;
    return table(columns, rows, (i) => store.select(kernels[i]?.id ?? ""), chosen);
  }

  private nodes(): HTMLElement {
    const { store } = this;
    const nodes = store.nodes.slice(0, MOST_ROWS);
    const rows = nodes.map((n) => [
      n.label,
      n.name ?? "",
      n.op,
      shape(n.shape),
      n.dtype,
      bytes(n.bytes),
      flops(n.flops),
      n.kernel ?? n.leaf ?? "–",
      n.phase,
      n.scope,
      n.source ? `${n.source.cell}:${n.source.line}` : "–",
    ]);
    return table(["node", "name", "op", "shape", "dtype", "bytes", "work", "kernel", "phase", "scope", "line"], rows, (i) => store.select(`n${i}`), nodes.findIndex((n) => `n${n.id}` === store.selection));
  }
}
