/** The schedule: launches on a time axis, waves and the barriers between them, and what the selected launch waited for. */

import { makeAxis, scale, waveColumns, type Axis } from "./axis.js";
import { asideOf, dimOf, growOf, h, leadOf, listOf, noteOf, plate, pressable, s, text, textWidth } from "./dom.js";
import { decimal, plural, time } from "./format.js";
import { kindRect, newPrefix, patterns } from "./graph.js";
import type { KernelView, Launch } from "./model.js";
import { table } from "./passes.js";
import type { Store, Topic } from "./store.js";

const ROW = 36;
const LEFT = 60;

export class ScheduleTab {
  readonly el = h("div", { class: "split" });

  constructor(private readonly store: Store) {
    this.draw();
  }

  update(topic: Topic): void {
    if (topic !== "search" && topic !== "pass") this.draw();
  }

  private draw(): void {
    const { launches, waves } = this.store.view.schedule;
    if (!launches.length) {
      this.el.replaceChildren(h("p", { class: "empty" }, "This program launches no kernel."));
      return;
    }
    const measured = launches.every((l) => l.measured);
    const known = measured ? "measured" : launches.every((l) => l.duration_us !== null) ? "modelled, not measured" : "not measured";
    const title = h("h3", {}, "Launches", noteOf(`${plural(launches.length, "launch")} in ${plural(waves.length, "wave")}, ${plural(waves.length - 1, "barrier")}, ${known}`.replace("launchs", "launches")));
    const main = h("div", { class: "main pad scroll" }, title, this.chart(), this.waits(), this.order());
    this.el.replaceChildren(main, this.waveList());
  }

  private chart(): SVGSVGElement {
    const { schedule, kernels } = this.store.view;
    const slots = 1 + Math.max(...schedule.launches.map((l) => l.slot));
    const width = Math.max(800, schedule.waves.length * 26 + LEFT);
    const bottom = 28 + slots * ROW;
    const axis = makeAxis(this.store.view, LEFT, width - 14);
    const prefix = newPrefix();
    const svg = s("svg", { viewBox: `0 0 ${width} ${bottom + 26}`, class: "chart", role: "group", "aria-label": `${kernels.length} launches on a time axis` }, patterns(prefix));
    const hatch = s("pattern", { id: `${prefix}gap`, width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, s("line", { x1: 0, y1: 0, x2: 0, y2: 8, class: "gap" }));
    svg.append(s("defs", {}, hatch), waveColumns(axis, 0, bottom, true));
    axis.waves.slice(0, -1).forEach((w) => svg.append(s("rect", { x: w.end, y: 22, width: Math.max(0, w.next - w.end), height: bottom - 22, fill: `url(#${prefix}gap)` })));
    for (let i = 0; i < slots; i++) svg.append(text(0, 28 + i * ROW + 20, `slot ${i}`, "dim"));
    schedule.launches.forEach((launch, i) => svg.append(this.bar(prefix, axis, launch, i)));
    for (const wait of this.arrows(axis, prefix)) svg.append(wait);
    svg.append(scale(axis, bottom));
    return svg;
  }

  private span(axis: Axis, launch: Launch): [number, number] {
    if (!axis.timed) return [axis.waves[launch.wave]?.x ?? 0, axis.waves[launch.wave]?.end ?? 0];
    return [axis.x(launch.start_us ?? 0), axis.x((launch.start_us ?? 0) + (launch.duration_us ?? 0))];
  }

  private bar(prefix: string, axis: Axis, launch: Launch, index: number): SVGGElement {
    const { store } = this;
    const kernel = store.kernel(launch.kernel) as KernelView;
    const [x, end] = this.span(axis, launch);
    const y = 28 + launch.slot * ROW;
    const w = Math.max(2, end - x);
    const chosen = store.selection !== "" && store.selectedKernel?.id === kernel.id;
    const label = `launch ${index}, ${kernel.id}, ${kernel.label}, wave ${launch.wave}, ${time(launch.duration_us)}`;
    const g = s(
      "g",
      { class: launch.measured ? "bar-mark" : "bar-mark hollow", ...pressable(label, () => store.select(kernel.id)) },
      kindRect(prefix, kernel.kind, kernel.phase, x, y, w, 28),
      s("title", {}, label),
    );
    const duration = launch.duration_us === null ? "" : decimal(launch.duration_us);
    if (w > textWidth(kernel.id) + 8) g.append(plate(x + 7, y + 19, kernel.id, "strong"));
    if (duration && w > textWidth(kernel.id) + textWidth(duration) + 26) g.append(plate(end - 7, y + 19, duration, "", "end"));
    if (chosen) g.append(s("rect", { x: x - 3, y: y - 3, width: w + 6, height: 34, rx: 5, class: "ring" }));
    return g;
  }

  private chosenLaunch(): [Launch, number] | undefined {
    const id = this.store.selection ? this.store.selectedKernel?.id : undefined;
    const at = this.store.view.schedule.launches.findIndex((l) => l.kernel === id);
    const launch = this.store.view.schedule.launches[at];
    return launch ? [launch, at] : undefined;
  }

  private arrows(axis: Axis, prefix: string): SVGPathElement[] {
    const found = this.chosenLaunch();
    if (!found) return [];
    const [launch] = found;
    const [x] = this.span(axis, launch);
    const y = 28 + launch.slot * ROW + 14;
    return this.latest(launch).flatMap((i) => {
      const other = this.store.view.schedule.launches[i];
      if (!other) return [];
      const [, end] = this.span(axis, other);
      const from = 28 + other.slot * ROW + 14;
      const middle = Math.max(end + 3, x - 10);
      const path = from === y ? `M${end} ${y}H${x - 4}` : `M${end} ${from}H${middle}V${y}H${x - 4}`;
      return [s("path", { d: path, class: "wire lit", "marker-end": `url(#${prefix}arrow)` })];
    });
  }

  /** Those it waited for longest: arrows from all the others would only cross the bars. */
  private latest(launch: Launch): number[] {
    const { launches } = this.store.view.schedule;
    const end = (i: number): number => (launches[i]?.start_us ?? launches[i]?.wave ?? 0) + (launches[i]?.duration_us ?? 0);
    const last = Math.max(...launch.waits_for.map(end));
    return launch.waits_for.filter((i) => end(i) >= last - 1e-9);
  }

  /** What a launch waits for another for: a tensor it reads, or a reader of what it overwrites. */
  private reason(launch: Launch, other: Launch | undefined): string {
    const [kernel, from] = [this.store.kernel(launch.kernel), this.store.kernel(other?.kernel)];
    if (!kernel || !from) return "another launch";
    const reads = new Set(kernel.inputs.map((t) => t.node));
    const made = from.outputs.filter((t) => reads.has(t.node)).map((t) => t.label);
    if (made.length) return `${made.join(", ")} from ${from.id}`;
    const needed = from.inputs.filter((t) => kernel.in_place.includes(t.label)).map((t) => t.label);
    return `${from.id}${needed.length ? `, which reads the old ${needed.join(", ")}` : ""}`;
  }

  private waits(): HTMLElement {
    const found = this.chosenLaunch();
    if (!found) return leadOf("Choose a launch to see what it waited for. A grey column is a wave: its launches may run together; hatching is the barrier before the next.");
    const [launch, at] = found;
    if (!launch.waits_for.length) return leadOf(h("b", {}, launch.kernel), " waits for nothing but the feeds.");
    const reasons = launch.waits_for.map((i) => {
      const other = this.store.view.schedule.launches[i];
      const known = launch.start_us !== null && other?.start_us != null && other.duration_us !== null;
      const slack = known ? Math.max(0, (launch.start_us ?? 0) - (other.start_us ?? 0) - (other.duration_us ?? 0)) : 0;
      return `${this.reason(launch, other)}${known ? ` (${slack < 0.05 ? "no" : time(slack)} slack)` : ""}`;
    });
    const after = this.store.view.schedule.launches.filter((l) => l.waits_for.includes(at)).map((l) => l.kernel);
    return leadOf(h("b", {}, launch.kernel), ` waited for ${reasons.join(" and ")}. `, after.length ? `${after.join(", ")} wait${after.length === 1 ? "s" : ""} for it.` : "Nothing waits for it.");
  }

  /** The launches as rows: what each waited for, and for which tensors. */
  private order(): HTMLElement {
    const { launches } = this.store.view.schedule;
    const rows = launches.map((l, i) => [
      String(i),
      l.kernel,
      this.store.kernel(l.kernel)?.label ?? "",
      String(l.wave),
      l.waits_for.map((w) => launches[w]?.kernel ?? "?").join(", ") || "–",
      time(l.duration_us),
    ]);
    const chosen = launches.findIndex((l) => this.store.selection && l.kernel === this.store.selectedKernel?.id);
    return table(["launch", "kernel", "what", "wave", "waits for", "time"], rows.slice(0, 400), (i) => this.store.select(launches[i]?.kernel ?? ""), chosen);
  }

  private waveList(): HTMLElement {
    const { schedule, header } = this.store.view;
    const length = (members: number[]): number => Math.max(...members.map((i) => schedule.launches[i]?.duration_us ?? 0));
    const longest = Math.max(...schedule.waves.map(length), 1e-9);
    const rows = schedule.waves.slice(0, 60).map((members, i) => {
      const own = members.map((m) => schedule.launches[m]?.kernel ?? "");
      const share = length(members) / longest;
      return h(
        "div",
        { class: own.includes(this.store.selectedKernel?.id ?? "") && this.store.selection ? "row chosen" : "row" },
        h("b", {}, `wave ${i}`),
        growOf(own.slice(0, 8).join("  ") + (own.length > 8 ? ` and ${own.length - 8} more` : ""), h("span", { class: "track" }, h("span", { class: "bar", style: `width:${share * 100}%` }))),
        h("span", {}, length(members) ? time(length(members)) : ""),
      );
    });
    return h(
      "aside",
      { class: "pane", "aria-label": "Waves" },
      h("section", {}, h("h3", {}, "Waves", asideOf("the longest launch sets the time")), listOf(rows)),
      this.comparison(header.predicted_us, this.store.live.step_us ?? header.step_us),
    );
  }

  private comparison(predicted: number | null, measured: number | null): HTMLElement {
    const most = Math.max(predicted ?? 0, measured ?? 0, 1e-9);
    const bar = (value: number | null, cls: string, label: string): HTMLElement =>
      h("div", { class: "pm" }, h("span", {}, label), growOf(value === null ? dimOf(cls === "hollow" ? "the device's peaks are not measured" : "not measured") : h("span", { class: `hbar ${cls}`, style: `width:${(value / most) * 70}%` }), value === null ? null : ` ${time(value)}`));
    return h("section", {}, h("h3", {}, "Predicted against measured"), bar(predicted, "hollow", "predicted"), bar(measured, "solid", "measured"));
  }
}
