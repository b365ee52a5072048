/** The workbench around the views: header with facts and toggles, tabs, the sentence strip, keys, states. */

import { KEYS } from "./details.js";
import { type Child, dimOf, h } from "./dom.js";
import { bytes, count, figures, time } from "./format.js";
import { GraphTab } from "./graph.js";
import { KernelsTab } from "./kernels.js";
import { LossTab } from "./loss.js";
import { MemoryTab } from "./memory.js";
import type { Model, Sentence, Status, Tab, Toggle } from "./model.js";
import { PassesTab } from "./passes.js";
import { ScheduleTab } from "./schedule.js";
import { TABS, type Store, type Topic } from "./store.js";
import css from "./style.css";
import { TableTab } from "./tables.js";
import { followTheme } from "./theme.js";
import { TimingsTab } from "./timings.js";

interface View {
  el: HTMLElement;
  update(topic: Topic): void;
  key?(e: KeyboardEvent): boolean;
}

export class Workbench {
  readonly el: HTMLElement;
  private readonly header = h("header", { class: "head" });
  private readonly banner = h("div", { class: "banners", role: "status", "aria-live": "polite" });
  private readonly tabs = h("div", { class: "tabs", role: "tablist", "aria-label": "views" });
  private readonly menu = h("select", { class: "menu", "aria-label": "view" });
  private readonly body = h("div", { class: "body", role: "tabpanel", tabindex: -1 });
  private readonly strip = h("footer", { class: "strip" });
  private readonly search: HTMLInputElement;
  private readonly views = new Map<Tab, View>();
  private shown: View | undefined;
  private match = -1;
  private readonly forget: () => void;

  constructor(
    private readonly store: Store,
    model: Model,
  ) {
    this.search = h("input", { type: "search", placeholder: "search nodes", "aria-label": "search nodes and kernels", spellcheck: "false", oninput: () => this.find() });
    const height = model.get("height");
    this.el = h(
      "div",
      { class: "mg", role: "region", "aria-label": store.view.caption, style: height ? `--mg-height:${height}px` : undefined },
      h("style", {}, css),
      h("div", { class: "frame" }, this.header, this.banner, h("nav", { class: "nav" }, this.menu, this.tabs), this.body, this.strip),
    );
    this.forget = followTheme(this.el);
    this.menu.append(...TABS.map(([id, label]) => h("option", { value: id }, label)));
    this.menu.addEventListener("change", () => store.show(this.menu.value as Tab));
    this.el.addEventListener("keydown", (e) => this.key(e));
    this.el.addEventListener("pointerover", (e) => this.hover(e.target as Element));
    this.el.addEventListener("pointerleave", () => this.light(new Set()));
    store.subscribe((topic) => this.update(topic));
    this.update("view");
  }

  dispose(): void {
    this.forget();
    this.views.clear();
  }

  private update(topic: Topic): void {
    const place = this.focusPlace();
    this.draw(topic);
    // What had the focus may have been drawn anew: its successor takes it, so that the keys go on working.
    if (place >= 0 && !this.el.contains(this.focused())) (this.focusables()[place] ?? this.body).focus({ preventScroll: true });
  }

  private focused(): Element | null {
    return (this.el.getRootNode() as Document | ShadowRoot).activeElement ?? null;
  }

  private focusables(): HTMLElement[] {
    return [...this.el.querySelectorAll<HTMLElement>("button,input,select,[tabindex]")];
  }

  /** The place of the focus among all that can have it, or -1. */
  private focusPlace(): number {
    const active = this.focused();
    return active && this.el.contains(active) ? this.focusables().indexOf(active as HTMLElement) : -1;
  }

  private draw(topic: Topic): void {
    if (topic === "view" || topic === "live") this.drawHeader();
    if (topic === "view" || topic === "status") this.drawBanner();
    if (topic === "view" || topic === "tab") this.drawTabs();
    for (const [tab, view] of this.views) if (tab === this.store.tab || topic === "view" || topic === "selection") view.update(topic);
    this.drawStrip();
  }

  private build(tab: Tab): View {
    const { store } = this;
    switch (tab) {
      case "graph":
        return new GraphTab(store, h("label", { class: "search" }, this.search, h("kbd", {}, "/")));
      case "passes":
        return new PassesTab(store);
      case "kernels":
        return new KernelsTab(store);
      case "schedule":
        return new ScheduleTab(store);
      case "memory":
        return new MemoryTab(store);
      case "timings":
        return new TimingsTab(store);
      case "loss":
        return new LossTab(store);
      case "table":
        return new TableTab(store);
    }
  }

  private drawTabs(): void {
    const { store } = this;
    this.tabs.replaceChildren(
      ...TABS.map(([id, label], i) =>
        h(
          "button",
          { role: "tab", "aria-selected": String(store.tab === id), tabindex: store.tab === id ? 0 : -1, title: `${i + 1}`, onclick: () => store.show(id) },
          label,
        ),
      ),
    );
    this.menu.value = store.tab;
    let view = this.views.get(store.tab);
    if (!view) this.views.set(store.tab, (view = this.build(store.tab)));
    if (this.shown !== view) {
      this.body.replaceChildren(view.el);
      this.shown = view;
      view.update("live");
    }
  }

  private drawHeader(): void {
    const { header, toggles } = this.store.view;
    const { live } = this.store;
    const run = live.run;
    const training = run?.status === "running";
    const step = live.step_us ?? header.step_us;
    const pairs: [string, Child, string?][] = training
      ? [
          [run.name, "training ●"],
          ["step", `${count(run.step)} of ${count(run.steps)}`],
          ["rate", run.rate ? `${count(Math.round(run.rate))} steps/s` : "–"],
          ["loss", figures(run.points[run.points.length - 1]?.[1] ?? NaN)],
          ["elapsed, left", `${figures(live.elapsed_s ?? 0)} s, ${figures(live.left_s ?? 0)} s`, "more"],
        ]
      : [
          ["program", header.kind],
          ["device", `${header.device} · ${header.backend}`, "more"],
          ["launches", `${count(header.launches)} in ${count(header.waves)} wave${header.waves === 1 ? "" : "s"}`],
          ...(step ?? header.predicted_us) !== null ? [[step === null ? "step, predicted" : "step, launches", time(step ?? header.predicted_us)] as [string, Child]] : [],
          ["compiled", time(header.compile_ms * 1000), "more"],
          ["memory", bytes(header.memory_bytes), "more"],
        ];
    const done = training && run.steps ? (run.step / run.steps) * 100 : 0;
    const facts = pairs.map(([label, value, cls]) => h("div", { class: cls ? `fact ${cls}` : "fact" }, dimOf(label), h("b", {}, value)));
    const controls = this.store.isStatic ? h("span", { class: "dim still" }, `saved ${this.store.view.saved} · static`) : h("div", { class: "toggles" }, toggles.map((t) => this.toggle(t)));
    this.header.replaceChildren(h("h2", {}, header.name), ...facts, controls);
    if (training) this.header.append(h("div", { class: "progress", role: "progressbar", "aria-valuenow": Math.round(done), "aria-label": "training", style: `width:${done}%` }));
  }

  private toggle(toggle: Toggle): HTMLElement {
    const button: HTMLButtonElement = h(
      "button",
      {
        class: "toggle",
        role: "switch",
        "aria-checked": String(toggle.on),
        title: toggle.title,
        onclick: () => {
          const on = button.getAttribute("aria-checked") !== "true";
          button.setAttribute("aria-checked", String(on));
          this.store.toggle(toggle.name, on);
        },
      },
      h("span", { class: "knob", "aria-hidden": "true" }),
      toggle.name,
    );
    return button;
  }

  private drawBanner(): void {
    const { status, view } = this.store;
    this.body.classList.toggle("stale", status.state === "compiling");
    const banners: HTMLElement[] = [];
    if (view.header.note) banners.push(h("div", { class: "banner warn" }, h("b", {}, view.header.note)));
    if (this.store.isStatic) banners.push(h("div", { class: "banner calm" }, h("span", {}, h("b", {}, "A saved drawing. "), "Tabs and zoom work; for switches run the cell again.")));
    if (status.state === "compiling") banners.push(compiling(status));
    if (status.state === "error") banners.push(...broken(status));
    this.banner.replaceChildren(...banners);
  }

  private drawStrip(): void {
    const sentence = this.sentence();
    this.strip.replaceChildren(
      h("p", {}, h("b", {}, sentence[0]), ` ${sentence[1]}`),
      h("button", { class: "link", onclick: () => this.help() }, "?  keys and words"),
    );
  }

  private sentence(): Sentence {
    const { store } = this;
    const { sentences } = store.view;
    if (store.tab === "passes") return store.view.passes[store.pass]?.sentence ?? sentences.passes ?? ["", ""];
    if (store.tab === "loss" && store.live.sentence) return store.live.sentence;
    const kernel = store.selection || store.tab === "kernels" ? (store.tab === "kernels" ? store.shownKernel : store.selectedKernel) : undefined;
    const own = kernel && (store.tab === "graph" || store.tab === "kernels") ? sentences.kernel[kernel.id] : undefined;
    return own ?? sentences[store.tab] ?? [store.view.caption, ""];
  }

  // Highlighting ---------------------------------------------------------------------------------------------------------

  private hover(target: Element): void {
    const linked = target.closest<HTMLElement>("[data-n]");
    const ids = linked && this.el.contains(linked) ? (linked.getAttribute("data-n") ?? "").split(" ").filter(Boolean) : [];
    this.light(new Set(ids));
  }

  private light(ids: Set<string>): void {
    for (const el of this.el.querySelectorAll("[data-n]")) {
      const own = (el.getAttribute("data-n") ?? "").split(" ");
      el.classList.toggle("hl", ids.size > 0 && own.some((id) => ids.has(id)));
    }
  }

  // Keys -----------------------------------------------------------------------------------------------------------------

  private find(): void {
    this.store.query = this.search.value;
    this.match = -1;
    this.store.emit("search");
  }

  private step(by: number): void {
    const found = this.store.matches();
    if (!found.length) return;
    this.match = (this.match + by + found.length) % found.length;
    this.store.select(found[this.match] ?? "");
  }

  private move(by: number): void {
    const { passes } = this.store.view;
    this.store.pass = Math.max(0, Math.min(passes.length - 1, this.store.pass + by));
    if (this.store.tab !== "passes") this.store.show("passes");
    this.store.emit("pass");
  }

  private key(e: KeyboardEvent): void {
    if (e.ctrlKey || e.metaKey || e.altKey) return;
    const typing = e.target instanceof HTMLInputElement || e.target instanceof HTMLSelectElement;
    if (typing) {
      this.typed(e);
      return;
    }
    if (e.key.startsWith("Arrow") && e.target instanceof HTMLElement && e.target.role === "tab") return this.walkTabs(e);
    const handled = this.shown?.key?.(e) || this.command(e);
    // A notebook in command mode would take these keys as its own.
    if (handled || e.key.length === 1) e.stopPropagation();
    if (handled) e.preventDefault();
  }

  private typed(e: KeyboardEvent): void {
    e.stopPropagation();
    if (e.target !== this.search) return;
    if (e.key === "Enter") this.step(e.shiftKey ? -1 : 1);
    if (e.key === "Escape") {
      this.search.value = "";
      this.find();
      this.el.querySelector<SVGElement>("svg.graph")?.focus();
    }
  }

  private command(e: KeyboardEvent): boolean {
    const tab = TABS[Number(e.key) - 1];
    const commands: Record<string, () => void> = {
      "/": () => {
        this.store.show("graph");
        this.search.focus();
      },
      "[": () => this.move(-1),
      "]": () => this.move(1),
      t: () => this.store.show("table"),
      n: () => this.step(1),
      N: () => this.step(-1),
      "?": () => this.help(),
      Escape: () => this.back(),
    };
    const command = commands[e.key] ?? (tab ? () => this.store.show(tab[0]) : undefined);
    command?.();
    return command !== undefined;
  }

  private back(): void {
    const open = this.el.querySelector<HTMLDialogElement>("dialog[open]");
    if (open) open.close();
    else if (this.store.tab !== "graph") this.store.show("graph");
    else this.store.select("");
  }

  private walkTabs(e: KeyboardEvent): void {
    const at = TABS.findIndex(([id]) => id === this.store.tab);
    const next = TABS[(at + (e.key === "ArrowRight" ? 1 : TABS.length - 1)) % TABS.length];
    if (next) this.store.show(next[0]);
    this.tabs.querySelector<HTMLElement>("[aria-selected=true]")?.focus();
    e.stopPropagation();
    e.preventDefault();
  }

  private help(): void {
    this.el.querySelector("dialog")?.remove();
    const dialog: HTMLDialogElement = h(
      "dialog",
      { class: "help", "aria-label": "keys and words" },
      h("h3", {}, "Keys"),
      h("dl", { class: "keys" }, KEYS.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)])),
      h("h3", {}, "Words"),
      h("dl", { class: "keys" }, WORDS.map(([word, what]) => [h("dt", {}, h("b", {}, word)), h("dd", {}, what)])),
      h("button", { class: "plain", onclick: () => dialog.close() }, "close  Esc"),
    );
    this.el.querySelector(".frame")?.append(dialog);
    dialog.show();
    dialog.querySelector("button")?.focus();
  }
}

const WORDS: [string, string][] = [
  ["node", "one operation of the graph"],
  ["kernel", "one WGSL function; a launch runs it once"],
  ["wave", "launches that may run at the same time"],
  ["tile", "the part of the result that one workgroup computes"],
  ["traffic", "bytes read from and written to storage"],
  ["alias", "a tensor that takes over a buffer whose tensor nobody reads any more"],
];

function compiling(status: Status): HTMLElement {
  const part = status.index !== undefined && status.count ? `, pass ${status.index} of ${status.count}` : "";
  return h("div", { class: "banner calm" }, h("b", {}, `${status.pass ?? "compiling"}${part}`), h("span", {}, "The last program stays below, greyed, until the new one is ready."));
}

function broken(status: Status): HTMLElement[] {
  const banners = [h("div", { class: "banner bad" }, h("b", {}, `⚠ ${status.title ?? "The program did not compile."}`), status.where ? h("span", {}, status.where) : null)];
  if (status.code) {
    const [from, to] = status.caret ?? [0, 0];
    const caret = to > from ? `\n${" ".repeat(from)}${"^".repeat(to - from)}` : "";
    banners.push(h("div", { class: "banner listing" }, h("pre", {}, status.code + caret)));
  }
  const rest = [...(status.details ?? []), ...(status.hint ? [`Try ${status.hint}`] : []), "The last good program is below. Nothing was lost."];
  banners.push(h("div", { class: "banner" }, rest.map((line) => h("p", {}, line))));
  return banners;
}
