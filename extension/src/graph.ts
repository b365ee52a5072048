/** The graph: boxes and lines where Python put them, one selection, pan and zoom, arrow keys along the edges. */

import { asideOf, clip, dimOf, h, MIDDLE, plate, roundedPath, s, text, textWidth } from "./dom.js";
import { details } from "./details.js";
import { decimal, plural, shape, time } from "./format.js";
import type { BoxView, Grouping, Kind, Phase, Picture, WireView } from "./model.js";
import type { Store, Topic } from "./store.js";

export const KINDS: Kind[] = ["matmul", "map", "reduce", "attention", "gather", "other"];
const LEGEND: Record<Kind, string> = {
  matmul: "matmul",
  map: "map",
  reduce: "reduce",
  attention: "attention",
  gather: "gather, scatter",
  other: "other",
};
/** Larger pictures are drawn as they come into sight. */
const AT_ONCE = 120;
let drawings = 0;

/** Hatching and dots in each kind's colour; the ids are the drawing's own. */
export function patterns(prefix: string): SVGDefsElement {
  const defs = s("defs");
  for (const kind of KINDS) {
    defs.append(
      s(
        "pattern",
        { id: `${prefix}${kind}-backward`, width: 8, height: 8, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
        s("rect", { width: 8, height: 8, class: `fill ${kind}` }),
        s("line", { x1: 0, y1: 0, x2: 0, y2: 8, class: `hatch ${kind}` }),
      ),
      s(
        "pattern",
        { id: `${prefix}${kind}-update`, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
        s("rect", { width: 6, height: 6, class: `fill ${kind}` }),
        s("circle", { cx: 1.5, cy: 1.5, r: 0.9, class: `dot ${kind}` }),
        s("circle", { cx: 4.5, cy: 4.5, r: 0.9, class: `dot ${kind}` }),
      ),
    );
  }
  const size = { refX: 7, refY: 4, markerWidth: 8, markerHeight: 8 };
  defs.append(
    s("marker", { id: `${prefix}arrow`, viewBox: "0 0 8 8", ...size, markerUnits: "userSpaceOnUse", orient: "auto" }, s("path", { d: "M0 1L8 4L0 7z", class: "arrow" })),
  );
  return defs;
}

export function newPrefix(): string {
  return `mg${++drawings}-`;
}

/** A rectangle in the kind's colours and the phase's pattern. */
export function kindRect(prefix: string, kind: Kind, phase: Phase, x: number, y: number, w: number, height: number, radius = 3): SVGGElement {
  const style = phase === "forward" ? undefined : `fill:url(#${prefix}${kind}-${phase})`;
  return s("g", { class: `kind ${kind}` }, s("rect", { x, y, width: Math.max(1, w), height, rx: radius, class: "body", style }));
}

export class GraphTab {
  readonly el: HTMLElement;
  private readonly stage = h("div", { class: "stage" });
  private legendRow: HTMLElement = h("div");
  private svg!: SVGSVGElement;
  private layer!: SVGGElement;
  private pane: HTMLElement;
  private readonly info = asideOf();
  private readonly groups = h("div", { class: "seg", role: "group", "aria-label": "group by" });
  /** The marks of each selection, and those that carry a class at present. */
  private places = new Map<string, SVGGElement[]>();
  private marked: [SVGElement, string][] = [];
  /** Boxes not drawn yet, and the box of each selection in a large picture. */
  private pending = new Set<BoxView>();
  private owner = new Map<string, BoxView>();
  private scale = 1;
  private offset: [number, number] = [0, 0];
  private picture: Picture | undefined;
  private prefix = "";
  private touched = false;

  constructor(
    private readonly store: Store,
    search: HTMLElement,
  ) {
    const toolbar = h("div", { class: "toolbar" }, dimOf("group by"), this.groups, search, this.info);
    this.pane = details(store);
    this.el = h("div", { class: "split" }, h("div", { class: "main" }, toolbar, this.stage, this.legendRow), this.pane);
    this.draw();
    const observer = new ResizeObserver(() => {
      if (!this.touched) this.fit();
    });
    observer.observe(this.stage);
  }

  update(topic: Topic): void {
    if (topic === "view" || topic === "group") this.draw();
    if (topic === "live") this.times();
    if (["selection", "view", "live"].includes(topic)) {
      const fresh = details(this.store);
      this.pane.replaceWith(fresh);
      this.pane = fresh;
    }
    if (topic === "selection" || topic === "search") this.marks();
  }

  private draw(): void {
    this.prefix = newPrefix();
    this.picture = this.store.view.pictures[this.store.group];
    this.drawGroups();
    this.layer = s("g");
    this.svg = s(
      "svg",
      { class: "graph", tabindex: 0, role: "application", "aria-roledescription": "graph", "aria-label": this.store.view.caption },
      patterns(this.prefix),
      this.layer,
    );
    this.places.clear();
    this.owner.clear();
    this.marked = [];
    if (this.picture) this.fill(this.picture);
    this.stage.replaceChildren(this.svg);
    const legend = this.legend();
    this.legendRow.replaceWith(legend);
    this.legendRow = legend;
    this.bind();
    this.touched = false;
    this.marks();
    this.fit();
  }

  private drawGroups(): void {
    const names: Grouping[] = ["kernel", "scope", "flat"];
    this.groups.replaceChildren(
      ...names.map((name) =>
        h(
          "button",
          {
            "aria-pressed": String(this.store.group === name),
            disabled: !this.store.view.pictures[name],
            onclick: () => {
              this.store.group = name;
              this.store.emit("group");
            },
          },
          name,
        ),
      ),
    );
  }

  private fill(picture: Picture): void {
    picture.columns.forEach(([label, x, w, y], i) => {
      this.layer.append(s("line", { x1: x, x2: x + w, y1: y, y2: y, class: "rule" }), text(x + w / 2, y + 17, clip(label || "program", w), "dim", MIDDLE));
      const next = picture.columns[i + 1];
      const end = picture.columns.find((c) => c[3] > y)?.[3] ?? picture.height;
      if (next && next[3] === y) this.layer.append(s("line", { x1: next[1] - 9, x2: next[1] - 9, y1: y, y2: end - 12, class: "dots" }));
    });
    const arrows: Record<string, string> = { forward: "forward →", backward: "← backward", update: "update ↓" };
    for (const wire of picture.wires) this.layer.append(this.wire(wire));
    for (const [label, y] of picture.rows) this.layer.append(plate(16, y, arrows[label] ?? label, "strong"));
    this.pending = new Set(picture.boxes);
    if (picture.boxes.length <= AT_ONCE) for (const box of picture.boxes) this.put(box);
    else for (const box of picture.boxes) for (const own of [box.id, `n${box.ref}`, ...box.items.map((i) => (typeof i.ref === "number" ? `n${i.ref}` : i.ref))]) this.owner.set(own, box);
    for (const wire of picture.wires) if (wire.label) this.layer.append(plate(wire.label[1], wire.label[2], wire.label[0], "dim", "middle"));
  }

  /** Draws a box, and remembers which marks a selection has. */
  private put(box: BoxView): void {
    this.pending.delete(box);
    const g = this.box(box);
    this.layer.append(g);
    for (const el of [g, ...g.querySelectorAll<SVGGElement>("[data-sel]")]) {
      const own = el.dataset.sel ?? "";
      this.places.set(own, [...(this.places.get(own) ?? []), el]);
    }
  }

  /** Of a large picture only what comes into sight is drawn. */
  private uncover(): void {
    if (!this.pending.size) return;
    const [left, top] = this.offset.map((o) => -o / this.scale - 60) as [number, number];
    const right = left + this.stage.clientWidth / this.scale + 120;
    const bottom = top + this.stage.clientHeight / this.scale + 120;
    for (const box of this.pending) if (box.x < right && box.x + box.w > left && box.y < bottom && box.y + box.h > top) this.put(box);
  }

  private wire(wire: WireView): SVGElement {
    const node = this.store.node(wire.node);
    const path = s("path", {
      d: roundedPath(wire.points),
      class: wire.gradient ? "wire gradient" : "wire",
      "data-from": wire.from,
      "data-to": wire.to,
      "marker-end": `url(#${this.prefix}arrow)`,
    });
    if (node) path.append(s("title", {}, `${node.name ?? node.label}  ${shape(node.shape)} ${node.dtype}`));
    return path;
  }

  private box(box: BoxView): SVGGElement {
    if (box.role === "kernel" || box.role === "group") return this.container(box);
    const node = this.store.node(Number(box.ref));
    const g = s("g", { class: `port ${box.role}`, "data-sel": `n${box.ref}`, "data-n": box.ref, transform: `translate(${box.x} ${box.y})` });
    this.name(g, `${box.title}, ${box.role}, ${node ? shape(node.shape) : ""} ${node?.dtype ?? ""}`);
    if (box.role === "output") {
      g.append(text(box.w / 2, 13, box.title, "strong", MIDDLE));
      return g;
    }
    const radius = box.role === "feed" ? box.h / 2 : box.role === "node" ? 3 : 0;
    if (box.role === "node") g.append(kindRect(this.prefix, box.kind, box.phase, 0, 0, box.w, box.h));
    const plated = box.role === "node" ? { x: 4, y: 3, w: box.w - 8, h: box.h - 6 } : { x: 0, y: 0, w: box.w, h: box.h };
    g.append(
      s("rect", { x: plated.x, y: plated.y, width: plated.w, height: plated.h, rx: radius, class: "pill" }),
      s("text", { x: box.w / 2, y: box.h / 2 + 4, "text-anchor": "middle" }, s("tspan", { class: "strong" }, box.title), s("tspan", { class: "dim" }, ` ${box.subtitle}`)),
    );
    return g;
  }

  private container(box: BoxView): SVGGElement {
    const kernel = this.store.kernel(String(box.ref));
    const isKernel = box.role === "kernel";
    const g = s("g", { class: `kernel kind ${box.kind}`, "data-sel": isKernel ? box.id : undefined, "data-kernel": isKernel ? box.id : undefined, transform: `translate(${box.x} ${box.y})` });
    if (kernel && isKernel) {
      const reads = kernel.inputs.map((t) => t.label).join(", ");
      this.name(g, `${kernel.id}, ${kernel.label}, ${kernel.phase}, ${time(this.store.median(kernel) ?? kernel.predicted_us)}, reads ${reads}`);
    }
    const bodyStyle = box.phase === "forward" || !isKernel ? undefined : `fill:url(#${this.prefix}${box.kind}-${box.phase})`;
    g.append(
      s("rect", { width: box.w, height: box.h, rx: 4, class: "body", style: bodyStyle }),
      s("path", { d: `M0 23V4a4 4 0 0 1 4-4H${box.w - 4}a4 4 0 0 1 4 4V23z`, class: "head" }),
      s("rect", { width: box.w, height: box.h, rx: 4, class: "edge" }),
    );
    const right = kernel && isKernel ? time(this.store.median(kernel) ?? kernel.predicted_us) : "";
    const room = box.w - 26 - textWidth(box.title) - textWidth(right);
    g.append(text(8, 16, box.title, "strong"));
    if (room > textWidth(box.subtitle) || !isKernel) g.append(text(14 + textWidth(box.title), 16, clip(box.subtitle, room), "dim"));
    if (isKernel && kernel && (this.store.median(kernel) ?? kernel.predicted_us) !== null)
      g.append(text(box.w - 7, 16, right, this.store.median(kernel) === null ? "predicted time" : "time", { "text-anchor": "end", "data-time": box.id }));
    for (const points of box.wires) g.append(s("path", { d: roundedPath(points, 3), class: "wire inner", "marker-end": `url(#${this.prefix}arrow)` }));
    for (const item of box.items) g.append(this.item(box, item));
    if (box.note) g.append(plate(box.w / 2, box.h - 7, clip(box.note, box.w - 12), "dim", "middle"));
    return g;
  }

  private item(box: BoxView, item: BoxView["items"][number]): SVGGElement {
    const isNode = typeof item.ref === "number";
    const kernel = isNode ? undefined : this.store.kernel(item.ref as string);
    const selection = isNode ? `n${item.ref}` : String(item.ref);
    const g = s("g", { class: "item", "data-sel": selection, "data-n": isNode ? item.ref : undefined });
    this.name(g, isNode ? `${item.text}, node of ${box.title}` : item.text);
    const rect = { x: item.x, y: item.y, width: item.w, height: item.h, rx: 3 };
    if (kernel && box.role === "group") {
      g.append(kindRect(this.prefix, kernel.kind, kernel.phase, item.x, item.y, item.w, item.h), plate(item.x + 8, item.y + 16, clip(item.text, item.w - 62)));
      const t = this.store.median(kernel) ?? kernel.predicted_us;
      if (t !== null) g.append(plate(item.x + item.w - 7, item.y + 16, decimal(t), "", "end"));
    } else g.append(s("rect", { ...rect, class: "pill" }), text(item.x + item.w / 2, item.y + item.h / 2 + 4, item.text, "", MIDDLE));
    return g;
  }

  private name(g: SVGGElement, label: string): void {
    g.setAttribute("role", "button");
    g.setAttribute("aria-label", label);
  }

  private legend(): HTMLElement {
    const used = KINDS.filter((kind) => this.store.view.kernels.some((k) => k.kind === kind));
    const phases: [Phase, string][] = [["forward", "plain: forward"], ["backward", "hatched: backward"], ["update", "dotted: update"]];
    const has = phases.filter(([phase]) => this.store.view.kernels.some((k) => k.phase === phase));
    const chip = (kind: string, phase: string): HTMLElement => h("span", { class: `chip ${kind} ${phase}`, "aria-hidden": "true" });
    return h(
      "div",
      { class: "legend", "aria-label": "reading it" },
      h("b", {}, "reading it"),
      used.map((kind) => h("span", {}, chip(kind, "forward"), LEGEND[kind])),
      has.length > 1 ? has.map(([phase, label]) => h("span", {}, chip(used[0] ?? "matmul", phase), label)) : null,
      h("span", {}, h("span", { class: "stroke", "aria-hidden": "true" }), "value"),
      has.length > 1 ? h("span", {}, h("span", { class: "stroke dashed", "aria-hidden": "true" }), "gradient") : null,
    );
  }

  /** New medians, without drawing anything anew. */
  private times(): void {
    for (const label of this.layer.querySelectorAll<SVGTextElement>("[data-time]")) {
      const kernel = this.store.kernel(label.dataset.time);
      const median = kernel ? this.store.median(kernel) : null;
      if (median === null) continue;
      label.textContent = time(median);
      label.setAttribute("class", "time");
    }
  }

  /** The ring, the yellow of the same origin, the search's matches; only what was or will be marked is touched. */
  private marks(): void {
    const { store } = this;
    for (const [el, cls] of this.marked) {
      el.classList.remove(cls);
      if (cls !== "lit") el.querySelector(":scope > .ring")?.remove();
    }
    this.marked = [];
    const kernel = store.selection ? store.selectedKernel?.id : undefined;
    const origin = store.selection ? store.sameOrigin(store.selectedNode) : [];
    const found = store.matches();
    for (const id of origin) this.mark(`n${id}`, "origin");
    for (const id of found) this.mark(id, "found");
    if (kernel) this.mark(kernel, "selected");
    if (store.selection !== kernel) this.mark(store.selection, "selected");
    for (const path of kernel ? this.layer.querySelectorAll<SVGElement>(`[data-from="${CSS.escape(kernel)}"],[data-to="${CSS.escape(kernel)}"]`) : []) {
      path.classList.add("lit");
      this.marked.push([path, "lit"]);
    }
    const matches = found.length ? `${found.length} match${found.length === 1 ? "" : "es"}   ` : "";
    this.info.textContent = `${matches}${plural(store.nodes.length, "node")} in ${plural(store.view.kernels.length, "kernel")}   ${Math.round(this.scale * 100)} %`;
  }

  private mark(selection: string, cls: string): void {
    const hidden = this.owner.get(selection);
    if (hidden && this.pending.has(hidden)) this.put(hidden);
    for (const g of this.places.get(selection) ?? []) {
      g.classList.add(cls);
      this.marked.push([g, cls]);
      if (cls === "origin") continue;
      const base = g.querySelector(":scope > rect, :scope > g > rect");
      const n = (name: string): number => Number(base?.getAttribute(name) ?? 0);
      if (base) g.append(s("rect", { x: n("x") - 4, y: n("y") - 4, width: n("width") + 8, height: n("height") + 8, rx: 6, class: "ring" }));
    }
  }

  // Pan and zoom ---------------------------------------------------------------------------------------------------------

  fit(all = false): void {
    if (!this.picture) return;
    const { clientWidth: w, clientHeight: hgt } = this.stage;
    if (!w || !hgt) return;
    const whole = Math.min(w / this.picture.width, hgt / this.picture.height, 1.15);
    // Text must stay readable: a picture that would shrink too far fills the width and is panned.
    this.scale = whole >= 0.8 || all ? whole : Math.max(0.8, Math.min(1, w / this.picture.width));
    this.offset = [Math.max(0, (w - this.picture.width * this.scale) / 2), 0];
    const id = this.store.selection && this.store.selectedKernel?.id;
    const [dx, dy] = this.hidden(this.picture.boxes.find((b) => b.id === id));
    this.offset = [this.offset[0] + dx, this.offset[1] + dy];
    this.transform();
  }

  private transform(): void {
    this.layer.setAttribute("transform", `translate(${this.offset[0]} ${this.offset[1]}) scale(${this.scale})`);
    this.uncover();
    this.info.textContent = (this.info.textContent ?? "").replace(/\d+ %$/, `${Math.round(this.scale * 100)} %`);
  }

  private moved(): void {
    this.touched = true;
    this.transform();
  }

  private zoom(factor: number, x = this.stage.clientWidth / 2, y = this.stage.clientHeight / 2): void {
    const scale = Math.min(4, Math.max(0.1, this.scale * factor));
    const k = scale / this.scale;
    this.offset = [x - (x - this.offset[0]) * k, y - (y - this.offset[1]) * k];
    this.scale = scale;
    this.moved();
  }

  private bind(): void {
    const { svg } = this;
    let start: [number, number, number, number] | null = null;
    let moved = false;
    svg.addEventListener("pointerdown", (e) => {
      start = [e.clientX, e.clientY, ...this.offset];
      moved = false;
    });
    svg.addEventListener("pointermove", (e) => {
      if (!start || !(e.buttons & 1)) return;
      const [dx, dy] = [e.clientX - start[0], e.clientY - start[1]];
      if (!moved && Math.hypot(dx, dy) < 4) return;
      moved = true;
      this.offset = [start[2] + dx, start[3] + dy];
      this.moved();
    });
    svg.addEventListener("click", (e) => {
      if (moved) return;
      const target = (e.target as Element).closest<SVGGElement>("[data-sel]");
      svg.focus({ preventScroll: true });
      this.store.select(target?.dataset.sel ?? "");
    });
    svg.addEventListener("dblclick", () => this.store.selectedKernel && this.store.show("kernels"));
    svg.addEventListener("wheel", (e) => {
      if (document.activeElement !== svg && svg.getRootNode() === document) return;
      e.preventDefault();
      const box = this.stage.getBoundingClientRect();
      this.zoom(Math.exp(-e.deltaY / 400), e.clientX - box.left, e.clientY - box.top);
    }, { passive: false });
    svg.addEventListener("keydown", (e) => this.press(e));
  }

  private press(e: KeyboardEvent): void {
    const actions: Record<string, () => void> = {
      "+": () => this.zoom(1.25),
      "=": () => this.zoom(1.25),
      "-": () => this.zoom(0.8),
      "0": () => this.fit(true),
      Enter: () => this.store.selection && this.store.show("kernels"),
      Escape: () => this.store.select(""),
    };
    const action = e.key.startsWith("Arrow") ? () => this.walk(e.key) : actions[e.key];
    if (!action || e.ctrlKey || e.metaKey) return;
    action();
    e.preventDefault();
    e.stopPropagation();
  }

  /** Left and right go to producers and consumers, up and down to the next box of the same column. */
  private walk(key: string): void {
    const picture = this.picture;
    if (!picture) return;
    const boxes = picture.boxes.filter((b) => b.role === "kernel" || b.role === "node");
    const current = boxes.find((b) => b.id === (this.store.selectedKernel?.id ?? this.store.selection) || b.id === this.store.selection);
    if (!current) {
      if (boxes[0]) this.store.select(boxes[0].role === "kernel" ? boxes[0].id : `n${boxes[0].ref}`);
      return;
    }
    const next = key === "ArrowRight" || key === "ArrowLeft" ? this.along(picture, boxes, current, key === "ArrowRight") : beside(boxes, current, key === "ArrowDown");
    if (next) this.store.select(next.role === "kernel" ? next.id : `n${next.ref}`);
    this.reveal(next);
  }

  private along(picture: Picture, boxes: BoxView[], current: BoxView, forward: boolean): BoxView | undefined {
    const ids = picture.wires.filter((w) => (forward ? w.from : w.to) === current.id).map((w) => (forward ? w.to : w.from));
    return boxes.find((b) => ids.includes(b.id));
  }

  private reveal(box: BoxView | undefined): void {
    const [dx, dy] = this.hidden(box);
    if (!dx && !dy) return;
    this.offset = [this.offset[0] + dx, this.offset[1] + dy];
    this.moved();
  }

  /** How far the picture must move to show a box. */
  private hidden(box: BoxView | undefined): [number, number] {
    if (!box) return [0, 0];
    const [x, y] = [box.x * this.scale + this.offset[0], box.y * this.scale + this.offset[1]];
    const { clientWidth: w, clientHeight: height } = this.stage;
    const dx = x < 10 ? 10 - x : Math.min(0, w - 10 - (x + box.w * this.scale));
    const dy = y < 10 ? 10 - y : Math.min(0, height - 10 - (y + box.h * this.scale));
    return [dx, dy];
  }
}

/** The nearest box above or below whose columns overlap, else the nearest at all in that direction. */
function beside(boxes: BoxView[], current: BoxView, down: boolean): BoxView | undefined {
  const ahead = boxes.filter((b) => (down ? b.y > current.y : b.y < current.y));
  const distance = (b: BoxView): number => Math.abs(b.y - current.y) + 0.5 * Math.abs(b.x + b.w / 2 - current.x - current.w / 2);
  return ahead.sort((a, b) => distance(a) - distance(b))[0];
}
