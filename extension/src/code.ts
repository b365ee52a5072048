/** Code panes: WGSL and Python with their tokens told apart, lines linked to nodes. */

import { h } from "./dom.js";
import type { KernelView, Source } from "./model.js";
import type { Store } from "./store.js";

const WGSL =
  /(\/\/.*$)|(@\w+)|\b(fn|let|var|const|return|for|if|else|while|loop|break|continue|struct|switch|case|default|enable|override|true|false)\b|\b(array|vec[234]|mat\dx\d|f32|f16|i32|u32|bool|atomic|ptr|workgroup|storage|read|read_write|private|function|uniform)\b|\b(0x[\da-f]+u?|\d+\.?\d*(?:e[+-]?\d+)?[fhiu]?)\b/gi;
const PYTHON =
  /(#.*$)|(%%?\w+)|\b(import|from|as|def|return|for|in|if|elif|else|while|with|lambda|class|not|and|or|None|True|False|yield)\b|("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')|\b(\d+\.?\d*(?:e[+-]?\d+)?)\b/g;
const CLASSES = {
  wgsl: ["c", "at", "kw", "ty", "nu"],
  python: ["c", "mg", "kw", "st", "nu"],
} as const;

export type Language = keyof typeof CLASSES;

/** The line as spans, one for each token that has a colour. */
export function tokens(line: string, language: Language): (Node | string)[] {
  const found: (Node | string)[] = [];
  let at = 0;
  for (const match of line.matchAll(language === "wgsl" ? WGSL : PYTHON)) {
    const which = match.slice(1).findIndex((group) => group !== undefined);
    if (match.index > at) found.push(line.slice(at, match.index));
    found.push(h("span", { class: `t-${CLASSES[language][which]}` }, match[0]));
    at = match.index + match[0].length;
  }
  found.push(line.slice(at));
  return found;
}

export interface Line {
  number: number;
  text: string;
  nodes: readonly number[];
  marked: boolean;
  badge?: string;
  /** Columns to underline. */
  under?: [number, number];
}

export function codeBlock(store: Store, lines: Line[], language: Language, label: string): HTMLElement {
  const rows = lines.map((line) => {
    const body = h("span", { class: "src" });
    body.append(...underlined(line, language));
    const row = h(
      "div",
      {
        class: line.marked ? "ln mark" : "ln",
        "data-n": line.nodes.join(" "),
        onclick: () => line.nodes.length && store.select(`n${line.nodes[line.nodes.length - 1]}`),
      },
      h("span", { class: "no", "aria-hidden": "true" }, String(line.number)),
      body,
      line.badge ? h("span", { class: "badge" }, line.badge) : null,
    );
    if (line.nodes.length) row.classList.add("linked");
    return row;
  });
  return h("div", { class: "code", role: "region", tabindex: 0, "aria-label": label }, rows);
}

function underlined(line: Line, language: Language): (Node | string)[] {
  if (!line.under || line.under[1] <= line.under[0]) return tokens(line.text, language);
  const [from, to] = line.under;
  const middle = h("span", { class: "under" });
  middle.append(...tokens(line.text.slice(from, to), language));
  return [...tokens(line.text.slice(0, from), language), middle, ...tokens(line.text.slice(to), language)];
}

/** The kernel's WGSL, the lines of the selected node marked. */
export function wgslLines(store: Store, kernel: KernelView): Line[] {
  const chosen = store.selectedNode;
  const module = store.wgsl(kernel);
  return module.split("\n").map((text, i) => {
    const nodes = kernel.lines[String(i + 1)] ?? [];
    const marked = !!chosen && chosen.kernel === kernel.id && nodes.includes(chosen.id);
    return { number: i + 1, text, nodes, marked, badge: marked ? `① ${chosen.label}` : undefined };
  });
}

/** The part of a listing around its marked lines. */
export function around(lines: Line[], before: number, total: number): Line[] {
  const first = lines.findIndex((l) => l.marked);
  const start = first >= 0 ? first : Math.max(0, lines.findIndex((l) => l.nodes.length > 0));
  const from = Math.max(0, Math.min(start - before, lines.length - total));
  return lines.slice(from, from + total);
}

/** The user's cell, with the line that made the selected node. */
export function cellLines(store: Store, source: Source): Line[] {
  const chosen = store.selectedNode;
  const known = store.view.cells[source.cell];
  const texts = known === undefined ? [source.text] : known.split("\n");
  return texts.map((text, i) => {
    const number = known === undefined ? source.line : i + 1;
    const nodes = store.nodes.filter((n) => n.source?.cell === source.cell && n.source.line === number).map((n) => n.id);
    const marked = number === source.line;
    const oneLine = source.end_line === source.line && known !== undefined;
    return {
      number,
      text,
      nodes,
      marked,
      badge: marked && chosen ? `① ${chosen.label}` : undefined,
      under: marked && oneLine ? [source.column, source.end_column] : undefined,
    };
  });
}
