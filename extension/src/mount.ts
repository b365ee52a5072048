/** Puts a workbench into an element and keeps it in step with its model. */

import { h } from "./dom.js";
import { MIME, type Model, type ProgramView, type Tab, type Traits } from "./model.js";
import { Store, TABS } from "./store.js";
import css from "./style.css";
import { followTheme } from "./theme.js";
import { Workbench } from "./workbench.js";

function isTab(value: unknown): value is Tab {
  return TABS.some(([id]) => id === value);
}

/** What is wrong with a view, or null. */
export function problem(view: unknown): string | null {
  if (typeof view !== "object" || view === null || !("version" in view)) return "This output carries no program view.";
  if ((view as ProgramView).version !== 1) return `This drawing has version ${String(view.version)}; this extension reads version 1. Run the cell again, or update meganeura.`;
  const parts = ["header", "nodes", "sources", "kernels", "pictures", "schedule", "memory", "timings", "sentences"];
  const missing = parts.filter((part) => !(part in view));
  return missing.length ? `This drawing is damaged: ${missing.join(", ")} missing in ${MIME}. Run the cell again.` : null;
}

function plainMessage(el: HTMLElement, lead: string, code: string): () => void {
  const box = h("div", { class: "mg" }, h("style", {}, css), h("div", { class: "frame" }, h("div", { class: "empty" }, h("b", {}, lead), h("code", { class: "big" }, code))));
  el.replaceChildren(box);
  return followTheme(box);
}

export interface MountOptions {
  isStatic?: boolean;
}

/** Draws and returns the function that takes everything away again. */
export function mount(model: Model, el: HTMLElement, options: MountOptions = {}): () => void {
  let clean: () => void = () => undefined;
  let store: Store | undefined;

  const start = (): void => {
    const view = model.get("view");
    clean();
    store = undefined;
    if (!view || !Object.keys(view).length) {
      clean = plainMessage(el, "Nothing is compiled yet. Compile it to see its kernels.", 'program = mg.compile({"loss": loss})');
      return;
    }
    const wrong = problem(view);
    if (wrong) {
      clean = plainMessage(el, wrong, "");
      return;
    }
    store = new Store(view, model);
    store.isStatic = options.isStatic ?? false;
    const tab = model.get("tab");
    if (isTab(tab)) store.tab = tab;
    store.selection = model.get("selection") ?? "";
    store.live = model.get("live") ?? {};
    store.status = model.get("status") ?? { state: "idle" };
    const bench = new Workbench(store, model);
    el.replaceChildren(bench.el);
    clean = () => bench.dispose();
  };

  const take = <K extends keyof Traits>(name: K, use: (value: NonNullable<Traits[K]>, store: Store) => void): [string, () => void] => [
    `change:${name}`,
    () => {
      const value = model.get(name);
      if (store && value !== undefined && value !== null) use(value as NonNullable<Traits[K]>, store);
      else if (name === "view") start();
    },
  ];
  const handlers: [string, () => void][] = [
    take("view", (view, s) => (problem(view) ? start() : s.replace(view))),
    take("live", (live, s) => {
      s.live = live;
      s.emit("live");
    }),
    take("status", (status, s) => {
      s.status = status;
      s.emit("status");
    }),
    take("selection", (selection, s) => s.select(selection)),
    take("tab", (tab, s) => isTab(tab) && s.show(tab)),
  ];
  start();
  for (const [event, handler] of handlers) model.on(event, handler);
  return () => {
    for (const [event, handler] of handlers) model.off(event, handler);
    clean();
    el.replaceChildren();
  };
}

/** A model without a kernel: the traits live in the page only. */
export class StillModel implements Model {
  private readonly traits: Partial<Traits>;

  constructor(view: ProgramView) {
    this.traits = { view, selection: "", tab: "graph", options: {} };
  }

  get<K extends keyof Traits>(name: K): Traits[K] | undefined {
    return this.traits[name];
  }

  set<K extends keyof Traits>(name: K, value: Traits[K]): void {
    this.traits[name] = value;
  }

  save_changes(): void {}

  on(): void {}

  off(): void {}
}

export function mountStatic(view: ProgramView, el: HTMLElement): () => void {
  return mount(new StillModel(view), el, { isStatic: true });
}
