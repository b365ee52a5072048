/** The loss: thin samples, thick smoothed line, other runs dashed and named at their ends; drawn live. */

import { asideOf, dimOf, END, growOf, h, listOf, MIDDLE, plate, s, text } from "./dom.js";
import { count, figures, ticks } from "./format.js";
import type { RunView } from "./model.js";
import type { Store, Topic } from "./store.js";

type Point = [number, number];

/** An exponential mean that starts at the first sample. */
export function smooth(points: readonly Point[], keep = 0.88): Point[] {
  let mean = points[0]?.[1] ?? 0;
  return points.map(([x, y]) => [x, (mean = Number.isFinite(y) ? keep * mean + (1 - keep) * y : mean)]);
}

export class LossTab {
  readonly el = h("div", { class: "split" });
  private log = true;

  constructor(private readonly store: Store) {
    this.draw();
  }

  update(topic: Topic): void {
    if (topic === "view" || topic === "live") this.draw();
  }

  key(e: KeyboardEvent): boolean {
    if (e.key !== "l") return false;
    this.log = !this.log;
    this.draw();
    return true;
  }

  private runs(): RunView[] {
    const live = this.store.live.run;
    const known = this.store.view.runs.filter((r) => r.name !== live?.name);
    return live ? [...known, live] : known;
  }

  private draw(): void {
    const runs = this.runs();
    const name = this.store.view.header.name;
    if (!runs.length) {
      this.el.replaceChildren(h("div", { class: "empty" }, h("b", {}, "No run yet."), h("p", {}, "Train it to see its loss here:"), h("code", { class: "big" }, `%%meganeura train ${name} --loss loss --steps 400 --optimizer adamw --lr 3e-3`)));
      return;
    }
    const title = h("h3", {}, "Loss", asideOf("thin: samples; thick: smoothed 0.88   ", h("button", { class: "link", onclick: () => ((this.log = !this.log), this.draw()) }, this.log ? "linear (l)" : "log (l)")));
    const main = h("div", { class: "main pad scroll" }, title, this.chart(runs, runs.map((r) => r.points), 380, this.log, "loss"));
    const latest = runs[runs.length - 1];
    for (const curve of Object.keys(latest?.curves ?? {}))
      main.append(h("h4", {}, curve), this.chart(runs, runs.map((r) => r.curves[curve] ?? []), 150, false, curve));
    this.el.replaceChildren(main, this.side(runs));
  }

  private chart(runs: RunView[], series: Point[][], height: number, log: boolean, label: string): SVGSVGElement {
    const [width, left, right, bottom] = [800, 56, 672, height - 26];
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": describe(runs, series, label) });
    // The axis ends where a run ended, and half as far again as one that goes on.
    const steps = Math.max(...runs.map((r) => (r.status === "running" ? Math.min(r.steps, r.step * 1.5 + 50) : r.step)), 1);
    const values = series.flat().map(([, y]) => y).filter((y) => Number.isFinite(y) && (!log || y > 0));
    const x = (step: number): number => left + (step / steps) * (right - left);
    if (!values.length) {
      svg.append(s("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "rule strongline" }), text((left + right) / 2, height / 2, "waiting for the first sample", "dim", MIDDLE));
      return svg;
    }
    const y = grid(svg, values, log, left, right, bottom);
    for (const t of ticks(steps, 5)) svg.append(text(x(t), bottom + 18, count(t), "dim", MIDDLE));
    svg.append(text(width - 60, bottom + 18, "step", "dim"));
    series.forEach((points, i) => {
      const run = runs[i];
      if (!run || !points.length) return;
      const latest = i === runs.length - 1;
      const line = smooth(points, points.length > 30 ? 0.88 : 0);
      if (latest) svg.append(s("path", { d: path(points, x, y), class: "samples" }));
      svg.append(s("path", { d: path(line, x, y), class: latest ? "curve" : "curve other" }));
      const end = line[line.length - 1];
      if (!end) return;
      if (latest) svg.append(s("circle", { cx: x(end[0]), cy: y(end[1]), r: 4, class: "ink-dot" }));
      svg.append(plate(Math.min(x(end[0]) + 10, width - 114), y(end[1]) + (latest ? 4 : -6), `${run.name} ${run.detail}`.slice(0, 17), latest ? "strong" : ""));
    });
    return svg;
  }

  private side(runs: RunView[]): HTMLElement {
    const rows = [...runs].reverse().map((r, i) => {
      const last = r.points[r.points.length - 1];
      return h(
        "div",
        { class: "row tall" },
        h("span", { class: i === 0 ? "stroke heavy" : "stroke dashed", "aria-hidden": "true" }),
        growOf(h("b", {}, r.name), ` ${r.detail}`, h("br"), dimOf(`${r.status}, step ${count(r.step)} of ${count(r.steps)}${r.rate ? `, ${count(Math.round(r.rate))} steps/s` : ""}`)),
        h("b", {}, last ? figures(last[1]) : "–"),
      );
    });
    return h("aside", { class: "pane", "aria-label": "Runs" }, h("section", {}, h("h3", {}, "Runs", asideOf("last loss")), listOf(rows)));
  }
}

function describe(runs: RunView[], series: Point[][], label: string): string {
  const ends = runs.map((r, i) => {
    const last = series[i]?.[series[i].length - 1];
    return last ? `${r.name} ${figures(last[1])} at step ${last[0]}` : r.name;
  });
  return `${label}: ${ends.join("; ")}`;
}

/** The horizontal lines with their numbers; returns the scale. */
function grid(svg: SVGSVGElement, values: number[], log: boolean, left: number, right: number, bottom: number): (v: number) => number {
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const top = 12;
  if (log) {
    const [a, b] = [Math.log10(low) - 0.05, Math.log10(high) + 0.05];
    const y = (v: number): number => bottom - ((Math.log10(Math.max(v, low)) - a) / Math.max(b - a, 1e-9)) * (bottom - top);
    for (let p = Math.floor(a); p <= Math.ceil(b); p++)
      for (const m of b - a > 2.5 ? [1] : [1, 2, 5]) {
        const v = m * 10 ** p;
        if (Math.log10(v) < a || Math.log10(v) > b) continue;
        svg.append(s("line", { x1: left, x2: right, y1: y(v), y2: y(v), class: "rule" }), text(left - 8, y(v) + 4, String(Number(v.toPrecision(1))), "dim", END));
      }
    svg.append(s("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "rule strongline" }));
    return y;
  }
  const floor = low >= 0 && low < high / 2 ? 0 : low;
  const y = (v: number): number => bottom - ((v - floor) / Math.max(high - floor, 1e-9)) * (bottom - top);
  for (const t of ticks(high - floor, 4)) svg.append(s("line", { x1: left, x2: right, y1: y(floor + t), y2: y(floor + t), class: "rule" }), text(left - 8, y(floor + t) + 4, figures(floor + t), "dim", END));
  return y;
}

function path(points: Point[], x: (v: number) => number, y: (v: number) => number): string {
  return points.filter(([, v]) => Number.isFinite(v)).map(([a, b], i) => `${i ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`).join("");
}
