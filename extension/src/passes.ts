/** The passes: a slider through time, before beside after on one set of places, and the rules that matched. */

import { asideOf, clip, dimOf, END, growOf, h, leadOf, MIDDLE, noteOf, roundedPath, s, text } from "./dom.js";
import { newPrefix, patterns } from "./graph.js";
import { decimal, figures, plural, shape } from "./format.js";
import type { EGraph, PassNode, PassPicture, PassView } from "./model.js";
import type { Store, Topic } from "./store.js";

const GLYPHS: Record<string, string> = { added: "+", removed: "−", changed: "~" };

export class PassesTab {
  readonly el = h("div", { class: "stack" });
  private timer: number | undefined;
  private onlyChanged = false;

  constructor(private readonly store: Store) {
    this.draw();
  }

  update(topic: Topic): void {
    if (topic === "view" || topic === "pass") this.draw();
    if (topic === "tab") this.stop();
  }

  key(e: KeyboardEvent): boolean {
    if (e.key === " ") this.play();
    else if (e.key === "d" || e.key === "D") {
      this.onlyChanged = !this.onlyChanged;
      this.draw();
    } else return false;
    return true;
  }

  private play(): void {
    if (this.timer !== undefined) return this.stop();
    this.timer = window.setInterval(() => {
      const last = this.store.view.passes.length - 1;
      this.store.pass = this.store.pass >= last ? 0 : this.store.pass + 1;
      this.store.emit("pass");
    }, 1000);
  }

  private stop(): void {
    window.clearInterval(this.timer);
    this.timer = undefined;
  }

  private draw(): void {
    const { passes } = this.store.view;
    const pass = passes[this.store.pass];
    if (!pass) {
      this.el.replaceChildren(h("p", { class: "empty" }, "No pass was recorded for this program."));
      return;
    }
    this.el.replaceChildren(this.stations(passes), this.headline(pass), h("div", { class: "split" }, this.drawings(pass), rules(pass)));
  }

  private stations(passes: PassView[]): HTMLElement {
    const go = (i: number): void => {
      this.store.pass = i;
      this.store.emit("pass");
    };
    return h(
      "div",
      { class: "stations", role: "group", "aria-label": "passes in order" },
      passes.map((p, i) =>
        h(
          "button",
          {
            class: i < this.store.pass ? "station done" : i === this.store.pass ? "station now" : "station",
            "aria-current": i === this.store.pass ? "step" : undefined,
            onclick: () => go(i),
          },
          h("span", {}, p.name),
          h("span", { class: "knob" }, String(i + 1)),
          dimOf(h("span", {}, `${decimal(p.ms)} ms`), h("span", {}, p.mark)),
        ),
      ),
    );
  }

  private headline(pass: PassView): HTMLElement {
    return h(
      "div",
      { class: "headline" },
      h("b", {}, `${this.store.pass + 1}  ${pass.name}`),
      growOf(pass.summary),
      h("span", { class: "dim keys" }, "[ and ] step   space plays   D shows only what changed"),
    );
  }

  private drawings(pass: PassView): HTMLElement {
    const pane = h("div", { class: "main diff" });
    if (pass.picture && pass.picture.nodes.length) {
      for (const side of ["before", "after"] as const) pane.append(this.side(pass, pass.picture, side));
      pane.append(legend());
    } else if (pass.rows.length) {
      pane.append(h("section", { class: "scroll" }, h("h3", {}, "What it decided"), table(pass.columns, pass.rows)));
    } else {
      pane.append(h("section", {}, h("h3", {}, `${pass.name} found nothing to do`), leadOf("The graph went through unchanged.")));
    }
    return pane;
  }

  private side(pass: PassView, picture: PassPicture, side: "before" | "after"): HTMLElement {
    const prefix = newPrefix();
    const total = side === "before" ? pass.before : pass.after;
    const shown = picture.nodes.filter((n) => n[side]).length;
    const svg = s("svg", {
      viewBox: `0 0 ${picture.width} ${picture.height}`,
      width: picture.width,
      role: "img",
      "aria-label": `${side} ${pass.name}: ${plural(shown, "node")}`,
    }, patterns(prefix));
    for (const wire of picture.wires) {
      if (!wire[side]) continue;
      const states = [picture.nodes[wire.from]?.state, picture.nodes[wire.to]?.state];
      const state = states.find((st) => st === "added" || st === "removed") ?? "same";
      svg.append(s("path", { d: roundedPath(wire.points), class: `wire ${state}`, "marker-end": `url(#${prefix}arrow)` }));
    }
    for (const node of picture.nodes) if (node[side] && !(this.onlyChanged && node.state === "same")) svg.append(this.node(node));
    return h("section", { class: "scroll" }, h("h3", {}, side, asideOf(`${picture.shown ? `${picture.shown}, ` : ""}${shown} of ${total ?? shown}`)), svg);
  }

  private node(node: PassNode): SVGGElement {
    const g = s(
      "g",
      { class: `pass-node ${node.state}`, transform: `translate(${node.x} ${node.y})`, role: "img", "aria-label": `${node.label}, ${node.shape}, ${node.state}` },
      s("rect", { width: node.w, height: node.h, rx: 3 }),
      text(10, 18, clip(node.label, node.w - 70, 13), "label"),
      text(node.w - 8, 18, node.shape, "dim", END),
      node.source ? s("title", {}, this.store.place(node.source)) : null,
    );
    const glyph = GLYPHS[node.state];
    if (glyph) g.append(s("circle", { cx: node.w, cy: 0, r: 8, class: "knob" }), text(node.w, 4, glyph, "glyph", MIDDLE));
    return g;
  }
}

function legend(): HTMLElement {
  const mark = (state: string): HTMLElement => h("span", {}, h("span", { class: `swatch ${state}` }, GLYPHS[state] ?? ""), state);
  return h("div", { class: "legend row" }, mark("added"), mark("removed"), mark("changed"), h("span", { class: "dim grow" }, "kinds are grey here: colour means change"));
}

/** The classes in which a rule found a second form; a letter in a chip is the class it reads. */
function egraph(graph: EGraph): HTMLElement {
  const letter = new Map(graph.classes.map((c, i) => [c.id, String.fromCharCode(65 + (i % 26)) + (i >= 26 ? Math.floor(i / 26) : "")]));
  return h(
    "section",
    {},
    h("h3", {}, "The e-graph, after saturation", asideOf(`${graph.classes.length} of ${graph.total_classes} classes, ${graph.total_enodes} e-nodes`)),
    leadOf("A dashed box is a class: every node in it computes the same value. Filled nodes were extracted; a letter is another class."),
    h(
      "div",
      { class: "egraph" },
      graph.classes.slice(0, 40).map((c) =>
        h(
          "div",
          { class: "eclass" },
          h("span", {}, h("b", {}, letter.get(c.id) ?? ""), ` ${c.name ?? ""}`, noteOf(`  ${shape(c.shape)}`)),
          c.enodes.map((e) => h("span", { class: e.extracted ? "enode taken" : "enode", title: `cost ${figures(e.cost)}${e.rule ? `, by ${e.rule}` : ""}` }, [e.op, ...e.children.map((k) => letter.get(k) ?? "·")].join(" "))),
        ),
      ),
    ),
  );
}

function rules(pass: PassView): HTMLElement {
  const pane = h("aside", { class: "pane wide", "aria-label": "Rules" });
  if (pass.rules.length) {
    const matches = pass.rules.reduce((sum, r) => sum + r.count, 0);
    pane.append(
      h(
        "section",
        {},
        h("h3", {}, "Rules that matched", asideOf(`${plural(pass.rules.length, "rule")}, ${matches} match${matches === 1 ? "" : "es"}, ${decimal(pass.ms)} ms`)),
        pass.rules.map((rule) =>
          h(
            "div",
            { class: "rulebox", tabindex: 0, "aria-label": `${rule.name}: ${rule.english}` },
            h("code", {}, rule.equation),
            asideOf(`${rule.count} match${rule.count === 1 ? "" : "es"}`),
            h("p", {}, rule.english),
            asideOf(rule.applied ? rule.saved || "taken" : "not taken: costs more"),
          ),
        ),
      ),
    );
  }
  if (pass.egraph?.classes.length) pane.append(egraph(pass.egraph));
  if (pass.picture && pass.rows.length) pane.append(h("section", {}, h("h3", {}, "By operation"), table(pass.columns, pass.rows)));
  if (!pane.childElementCount) {
    pane.append(h("section", {}, h("h3", {}, pass.name), leadOf(pass.summary)));
  }
  return pane;
}

/** A plain table; numbers stand at the right. */
export function table(columns: string[], rows: string[][], select?: (row: number) => void, chosen = -1): HTMLElement {
  const numeric = columns.map((_, i) => rows.length > 0 && rows.every((r) => /^[–\d.,]*( ?[×%]?)$|^[\d.,]+ (µs|ms|s|B|KiB|MiB|GiB|flop|[kMGT]flop|flop\/B|%)$/.test(r[i] ?? "")));
  return h(
    "table",
    {},
    h("thead", {}, h("tr", {}, columns.map((c, i) => h("th", { scope: "col", class: numeric[i] ? "num" : undefined }, c)))),
    h(
      "tbody",
      {},
      rows.map((row, at) =>
        h(
          "tr",
          {
            class: at === chosen ? "chosen" : undefined,
            tabindex: select ? 0 : undefined,
            onclick: select && (() => select(at)),
            onkeydown: select && ((e: KeyboardEvent) => e.key === "Enter" && select(at)),
          },
          row.map((cell, i) => h("td", { class: numeric[i] ? "num" : cell.length > 30 ? "long" : undefined }, cell)),
        ),
      ),
    ),
  );
}
