/** Making elements: every text goes in as a text node, never as markup. */

export type Attributes = Record<string, string | number | boolean | ((event: any) => void) | undefined>;
export type Child = Node | string | null | undefined | false | Child[];

const SVG = "http://www.w3.org/2000/svg";

function fill<E extends Element>(element: E, attributes: Attributes, children: Child[]): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

export function append(parent: Element, children: Child[]): void {
  for (const child of children) {
    if (Array.isArray(child)) append(parent, child);
    else if (child || child === "") parent.append(child);
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** The elements that every view repeats, by their class. */
function classed<K extends keyof HTMLElementTagNameMap>(tag: K, cls: string): (...children: Child[]) => HTMLElementTagNameMap[K] {
  return (...children) => h(tag, { class: cls }, ...children);
}

export const asideOf = classed("span", "aside");
export const noteOf = classed("span", "note");
export const dimOf = classed("span", "dim");
export const growOf = classed("span", "grow");
export const listOf = classed("div", "list");
export const leadOf = classed("p", "lead");

export const MIDDLE = { "text-anchor": "middle" };
export const END = { "text-anchor": "end" };

/** What makes a mark a button for the mouse, the keyboard and a reader. */
export function pressable(label: string, action: () => void): Attributes {
  const onkeydown = (e: KeyboardEvent): void => {
    if (e.key === "Enter") action();
  };
  return { role: "button", tabindex: 0, "aria-label": label, onclick: action, onkeydown };
}

export function text(x: number, y: number, label: string, cls = "", attributes: Attributes = {}): SVGTextElement {
  return s("text", { x, y, class: cls, ...attributes }, label);
}

/** An upper estimate of a text's width in px, the same as the Python layout's. */
export function textWidth(label: string, size = 12): number {
  let units = 0;
  for (const c of label) units += c > "\u2e80" && c < "\uffe0" ? 1 : 0.56;
  return units * size;
}

/** The text cut to a width, with an ellipsis. */
export function clip(label: string, width: number, size = 12): string {
  if (textWidth(label, size) <= width) return label;
  const keep = Math.max(1, Math.floor(width / (0.56 * size)) - 1);
  return `${[...label].slice(0, keep).join("")}…`;
}

/** Text on a plate of the panel's colour, so that it never stands on a pattern. */
export function plate(x: number, y: number, label: string, cls = "", anchor: "start" | "middle" | "end" = "start"): SVGGElement {
  const w = textWidth(label, 11) + 8;
  const left = anchor === "start" ? x - 3 : anchor === "end" ? x - w + 3 : x - w / 2;
  return s("g", {}, s("rect", { x: left, y: y - 12, width: w, height: 16, class: "plate" }), text(x, y, label, cls, { "text-anchor": anchor }));
}

/** A polyline with rounded corners. */
export function roundedPath(points: readonly number[], radius = 5): string {
  let path = `M${points[0]} ${points[1]}`;
  for (let i = 2; i < points.length - 2; i += 2) {
    const [ax, ay, bx, by, cx, cy] = points.slice(i - 2, i + 4) as [number, number, number, number, number, number];
    const before = Math.hypot(bx - ax, by - ay);
    const after = Math.hypot(cx - bx, cy - by);
    const r = Math.min(radius, before / 2, after / 2);
    if (r < 0.5) {
      path += `L${bx} ${by}`;
      continue;
    }
    path += `L${bx - ((bx - ax) / before) * r} ${by - ((by - ay) / before) * r}`;
    path += `Q${bx} ${by} ${bx + ((cx - bx) / after) * r} ${by + ((cy - by) / after) * r}`;
  }
  return `${path}L${points[points.length - 2]} ${points[points.length - 1]}`;
}
