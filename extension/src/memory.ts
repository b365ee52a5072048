/** Memory: live bytes over the step, and for each buffer which tensor holds it from its writer to its last reader. */

import { makeAxis, scale, waveColumns, type Axis } from "./axis.js";
import { facts } from "./details.js";
import { asideOf, clip, h, leadOf, listOf, noteOf, plate, pressable, s, text, textWidth } from "./dom.js";
import { bytes, plural } from "./format.js";
import { kindRect, newPrefix, patterns } from "./graph.js";
import type { Placement } from "./model.js";
import type { Store, Topic } from "./store.js";

const LEFT = 104;
const LIVE = 76;

export class MemoryTab {
  readonly el = h("div", { class: "split" });

  constructor(private readonly store: Store) {
    this.draw();
  }

  update(topic: Topic): void {
    if (topic === "view" || topic === "selection") this.draw();
  }

  private draw(): void {
    const { memory } = this.store.view;
    const note = `peak ${bytes(memory.peak)}; the plan holds ${bytes(memory.planned)} in ${plural(memory.buffers.length, "buffer")}; without alias ${bytes(memory.unaliased)}`;
    const main = h("div", { class: "main pad scroll" }, h("h3", {}, "Memory", noteOf(note)));
    if (memory.placements.length) main.append(this.chart());
    else main.append(leadOf("No tensor needs a buffer of its own between launches."));
    main.append(leadOf("Each row is one buffer; a block is a tensor from the launch that writes it to the last that reads it, in its writer's colours."));
    this.el.replaceChildren(main, this.side());
  }

  private heights(): number[] {
    const { buffers } = this.store.view.memory;
    const most = Math.max(...buffers, 1);
    return buffers.map((b) => Math.max(18, Math.round((b / most) * 100)));
  }

  private chart(): SVGSVGElement {
    const { memory, schedule } = this.store.view;
    const width = Math.max(800, schedule.waves.length * 22 + LEFT);
    const heights = this.heights();
    const bottom = 24 + LIVE + 16 + heights.reduce((a, b) => a + b + 3, 0);
    const axis = makeAxis(this.store.view, LEFT, width - 14);
    const prefix = newPrefix();
    const svg = s("svg", { viewBox: `0 0 ${width} ${bottom + 26}`, class: "chart", role: "group", "aria-label": `memory over ${schedule.waves.length} waves` }, patterns(prefix), waveColumns(axis, 0, bottom, true));
    this.live(svg, axis);
    let y = 24 + LIVE + 16;
    heights.forEach((height, i) => {
      svg.append(
        s("rect", { x: LEFT, y, width: axis.right - LEFT, height, class: "buffer" }),
        s("text", { x: 0, y: y + Math.min(height / 2 + 4, 60) }, s("tspan", { class: "strong" }, `b${i}`), s("tspan", { class: "dim" }, `  ${bytes(memory.buffers[i] ?? 0)}`)),
      );
      for (const placement of memory.placements) if (placement.buffer === i) svg.append(this.block(prefix, axis, placement, y, height));
      y += height + 3;
    });
    svg.append(scale(axis, bottom));
    return svg;
  }

  /** Live bytes as steps, one a wave, under the dashed line of the plan. */
  private live(svg: SVGSVGElement, axis: Axis): void {
    const { memory, schedule } = this.store.view;
    const most = Math.max(memory.planned, memory.peak, 1);
    const base = 24 + LIVE;
    const y = (value: number): number => base - (value / most) * (LIVE - 14);
    const levels = schedule.waves.map((w) => Math.max(...w.map((i) => memory.live[i] ?? 0)));
    let path = `M${axis.left} ${base}`;
    levels.forEach((level, i) => (path += `V${y(level)}H${axis.waves[i]?.next ?? axis.right}`));
    svg.append(s("path", { d: `${path}V${base}z`, class: "area" }), s("line", { x1: axis.left, x2: axis.right, y1: y(memory.planned), y2: y(memory.planned), class: "limit" }));
    svg.append(text(0, y(most) + 14, "live bytes", ""));
    const peak = levels.indexOf(Math.max(...levels));
    levels.forEach((level, i) => {
      const span = axis.waves[i];
      const label = bytes(level).replace(" KiB", "");
      if (!span || (level === levels[i - 1] && i !== peak) || span.next - span.x < textWidth(label) + 8) return;
      svg.append(text(span.x + 4, Math.min(base - 4, y(level) + 14), i === peak ? `${label}  peak` : label, i === peak ? "strong" : ""));
    });
    svg.append(plate(axis.left + 4, y(memory.planned) - 3, `plan: ${bytes(memory.planned)}`, "bad"));
  }

  private block(prefix: string, axis: Axis, p: Placement, y: number, height: number): SVGGElement {
    const { store } = this;
    const { launches } = store.view.schedule;
    const first = axis.waves[launches[p.first]?.wave ?? 0];
    const last = axis.waves[launches[p.last]?.wave ?? 0];
    const [x, end] = [first?.x ?? axis.left, last?.end ?? axis.right];
    const kernel = store.kernel(launches[p.first]?.kernel);
    const tall = Math.max(14, Math.min(height, (height * p.bytes) / (store.view.memory.buffers[p.buffer] ?? p.bytes)));
    const label = `${p.label}, ${bytes(p.bytes)}, from ${launches[p.first]?.kernel} to ${launches[p.last]?.kernel}`;
    const chosen = store.selection === `n${p.node}` || (store.selection !== "" && !store.selection.startsWith("n") && kernel?.id === store.selection);
    const g = s(
      "g",
      { class: "bar-mark", ...pressable(label, () => store.select(`n${p.node}`)) },
      kindRect(prefix, kernel?.kind ?? "other", kernel?.phase ?? "forward", x, y, end - x, tall, 0),
      s("title", {}, label),
    );
    const room = end - x - 12;
    if (room > 8) g.append(plate(x + 7, y + Math.min(tall / 2 + 4, 40), clip(p.label, room), chosen ? "strong" : ""));
    if (chosen) g.append(s("rect", { x: x - 2, y: y - 2, width: end - x + 4, height: tall + 4, rx: 3, class: "ring" }));
    return g;
  }

  private side(): HTMLElement {
    const { memory } = this.store.view;
    const owners = [...memory.placements].sort((a, b) => b.bytes - a.bytes).slice(0, 8);
    const held = memory.held.filter(([, size]) => size > 0);
    const saved = memory.unaliased ? Math.round(100 * (1 - memory.planned / memory.unaliased)) : 0;
    return h(
      "aside",
      { class: "pane", "aria-label": "Memory in numbers" },
      h("section", {}, h("h3", {}, "In numbers"), facts([
        ["peak of a step", h("b", {}, bytes(memory.peak))],
        ["planned", h("b", {}, bytes(memory.planned))],
        ["without alias", bytes(memory.unaliased)],
        ["saved by aliasing", `${saved} %`],
      ])),
      h("section", {}, h("h3", {}, "Held for the whole run", asideOf(bytes(memory.resident))), facts(held.map(([label, size]) => [label, bytes(size)]))),
      h(
        "section",
        {},
        h("h3", {}, "The largest tensors"),
        listOf(owners.map((p) =>
          h("button", { class: "row", "aria-pressed": String(this.store.selection === `n${p.node}`), onclick: () => this.store.select(`n${p.node}`) }, h("b", {}, p.label), h("span", { class: "grow dim" }, `b${p.buffer}`), h("span", {}, bytes(p.bytes))),
        )),
      ),
    );
  }
}
