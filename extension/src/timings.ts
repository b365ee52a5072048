/** Timings: the median and spread of each kernel against the model's prediction, and where a step goes. */

import { asideOf, END, growOf, h, leadOf, listOf, MIDDLE, pressable, s, text } from "./dom.js";
import { decimal, figures, plural, ticks, time } from "./format.js";
import { kindRect, newPrefix, patterns } from "./graph.js";
import type { TimingRow } from "./model.js";
import type { Store, Topic } from "./store.js";

const ROW = 28;

export class TimingsTab {
  readonly el = h("div", { class: "split" });

  constructor(private readonly store: Store) {
    this.draw();
  }

  update(topic: Topic): void {
    if (topic === "view" || topic === "selection" || topic === "live") this.draw();
  }

  private draw(): void {
    const { timings } = this.store;
    const measured = timings.rows.some((r) => r.median !== null);
    const note = measured ? `µs, ${plural(timings.steps, "step")}` : "µs, predicted; nothing was measured yet";
    const main = h("div", { class: "main pad scroll" }, h("h3", {}, "Kernel times", asideOf(note)), this.dots(timings.rows));
    main.append(h("div", { class: "legend row" },
      h("span", {}, h("span", { class: "glyph dot-solid" }), "median"), h("span", {}, h("span", { class: "glyph thick" }), "half of the steps"),
      h("span", {}, h("span", { class: "glyph thin" }), "5 to 95 %"), h("span", {}, h("span", { class: "glyph dot-hollow" }), "predicted")));
    if (!measured) main.append(leadOf("Measure with ", h("code", {}, `%meganeura profile ${this.store.view.header.name}`), "."));
    this.el.replaceChildren(main, this.side());
  }

  private dots(rows: TimingRow[]): SVGSVGElement {
    const { store } = this;
    const [width, left, right] = [800, 250, 730];
    const bottom = rows.length * ROW + 8;
    const most = Math.max(...rows.flatMap((r) => [r.p95 ?? 0, r.median ?? 0, r.predicted ?? 0]), 1e-9) * 1.04;
    const x = (us: number): number => left + (us / most) * (right - left);
    const prefix = newPrefix();
    const svg = s("svg", { viewBox: `0 0 ${width} ${bottom + 24}`, class: "chart", role: "group", "aria-label": "kernel times" }, patterns(prefix));
    for (const t of ticks(most, 6)) svg.append(s("line", { x1: x(t), x2: x(t), y1: 0, y2: bottom, class: "rule" }), text(x(t), bottom + 17, figures(t), "dim", MIDDLE));
    rows.forEach((row, i) => {
      const kernel = store.kernel(row.kernel);
      const y = i * ROW + 18;
      const value = row.median ?? row.predicted;
      const label = `${row.kernel}, ${kernel?.label ?? ""}, ${row.median === null ? "predicted" : "median"} ${time(value)}`;
      const g = s("g", { class: "bar-mark", ...pressable(label, () => store.select(row.kernel)) }, s("rect", { x: 0, y: y - 14, width, height: ROW, class: "hit" }));
      if (store.selection && store.selectedKernel?.id === row.kernel) g.append(s("rect", { x: 1, y: y - 13, width: width - 2, height: ROW - 2, rx: 4, class: "ring" }));
      if (kernel) g.append(kindRect(prefix, kernel.kind, kernel.phase, 6, y - 8, 20, 16));
      g.append(text(34, y + 4, row.kernel, "strong"), text(66, y + 4, (kernel?.label ?? "").slice(0, 28), "dim"));
      if (row.predicted !== null) g.append(s("circle", { cx: x(row.predicted), cy: y - (row.median === null ? 0 : 7), r: 3.5, class: "predicted-dot" }));
      if (row.median !== null) {
        if (row.p5 !== null && row.p95 !== null) g.append(s("line", { x1: x(row.p5), x2: x(row.p95), y1: y, y2: y, class: "thin-line" }));
        if (row.p25 !== null && row.p75 !== null) g.append(s("line", { x1: x(row.p25), x2: x(row.p75), y1: y, y2: y, class: "thick-line" }));
        g.append(s("circle", { cx: x(row.median), cy: y, r: 4, class: "ink-dot" }));
      }
      g.append(text(width - 10, y + 4, value === null ? "–" : decimal(value), row.median === null ? "dim" : "strong", END));
      svg.append(g);
    });
    return svg;
  }

  private side(): HTMLElement {
    const { timings } = this.store;
    const pane = h("aside", { class: "pane", "aria-label": "Where a step goes" });
    const total = timings.parts.reduce((sum, [, us]) => sum + us, 0);
    if (total > 0) {
      pane.append(
        h(
          "section",
          {},
          h("h3", {}, "Where a step goes", asideOf(`${time(total)} in all launches`)),
          h("div", { class: "stacked", role: "img", "aria-label": timings.parts.map(([n, us]) => `${n} ${time(us)}`).join(", ") }, timings.parts.map(([, us], i) => h("span", { class: `part p${i}`, style: `flex-grow:${us}` }))),
          h("div", { class: "legend row" }, timings.parts.map(([name, us], i) => h("span", {}, h("span", { class: `part p${i}` }), `${name} ${time(us)}`))),
        ),
      );
    }
    const ordered = [...timings.rows].sort((a, b) => (b.median ?? b.predicted ?? 0) - (a.median ?? a.predicted ?? 0));
    const sum = timings.rows.reduce((acc, r) => acc + (r.median ?? r.predicted ?? 0), 0) || 1;
    pane.append(
      h(
        "section",
        {},
        h("h3", {}, "Slowest first", asideOf("share of the kernels' time")),
        listOf(ordered.slice(0, 12).map((r) => {
          const share = (r.median ?? r.predicted ?? 0) / sum;
          return h("button", { class: "row", "aria-pressed": String(!!this.store.selection && this.store.selectedKernel?.id === r.kernel), onclick: () => this.store.select(r.kernel) },
            h("b", {}, r.kernel), growOf(this.store.kernel(r.kernel)?.label ?? "", h("span", { class: "track" }, h("span", { class: r.median === null ? "bar hollow" : "bar", style: `width:${share * 100}%` }))), h("span", {}, `${figures(share * 100)} %`));
        })),
      ),
    );
    if (timings.sum_us !== null && timings.step_us !== null) pane.append(h("section", {}, leadOf(`One after another ${time(timings.sum_us)}; with the launches of each wave side by side ${time(timings.step_us)}.`)));
    return pane;
  }
}
