/** What all views share: the program view, the one selection, and who wants to know of changes. */

import type { Grouping, KernelView, Live, Model, NodeView, ProgramView, SentNode, Source, Status, Tab } from "./model.js";

export const TABS: [Tab, string][] = [
  ["graph", "Graph"],
  ["passes", "Passes"],
  ["kernels", "Kernels"],
  ["schedule", "Schedule"],
  ["memory", "Memory"],
  ["timings", "Timings"],
  ["loss", "Loss"],
  ["table", "Table"],
];

/** view: everything changed; selection, live, tab, search, pass: that part; status: the line under the header. */
export type Topic = "view" | "selection" | "live" | "tab" | "search" | "pass" | "status" | "group";

export class Store {
  tab: Tab = "graph";
  group: Grouping = "kernel";
  selection = "";
  query = "";
  pass = 0;
  live: Live = {};
  status: Status = { state: "idle" };
  isStatic = false;
  nodes: NodeView[] = [];
  private listeners = new Set<(topic: Topic) => void>();
  private byKernel = new Map<string, KernelView>();
  /** What is selected, in terms that survive a recompile. */
  private anchor: { key: string; kernel: boolean } | null = null;

  constructor(
    public view: ProgramView,
    private readonly model: Model,
  ) {
    this.index();
    const { passes } = view;
    const starts = [passes.findIndex((p) => p.rules.some((r) => r.applied)), passes.findIndex((p) => p.picture)];
    this.pass = starts.find((i) => i >= 0) ?? 0;
  }

  subscribe(listener: (topic: Topic) => void): void {
    this.listeners.add(listener);
  }

  emit(topic: Topic): void {
    for (const listener of this.listeners) listener(topic);
  }

  private index(): void {
    this.nodes = named(this.view);
    this.byKernel = new Map(this.view.kernels.map((k) => [k.id, k]));
    if (!this.view.pictures[this.group]) {
      this.group = (["kernel", "scope", "flat"] as const).find((g) => this.view.pictures[g]) ?? "kernel";
    }
  }

  replace(view: ProgramView): void {
    this.view = view;
    this.index();
    this.pass = Math.min(this.pass, Math.max(0, view.passes.length - 1));
    if (this.anchor) {
      const node = this.nodes.find((n) => n.key === this.anchor?.key);
      this.selection = node ? (this.anchor.kernel ? (node.kernel ?? "") : `n${node.id}`) : "";
    }
    this.emit("view");
  }

  kernel(id: string | null | undefined): KernelView | undefined {
    return id ? this.byKernel.get(id) : undefined;
  }

  /** The WGSL of a kernel. */
  wgsl(kernel: KernelView): string {
    const { lines, texts } = this.view.modules;
    return (texts[kernel.wgsl] ?? []).map((i) => lines[i] ?? "").join("\n");
  }

  node(id: number): NodeView | undefined {
    return this.nodes[id];
  }

  get selectedNode(): NodeView | undefined {
    if (/^n\d+$/.test(this.selection)) return this.node(Number(this.selection.slice(1)));
    const kernel = this.kernel(this.selection);
    const last = kernel?.outputs[0]?.node ?? kernel?.nodes[kernel.nodes.length - 1];
    return last === undefined ? undefined : this.node(last);
  }

  get selectedKernel(): KernelView | undefined {
    return this.kernel(this.selection) ?? this.kernel(this.selectedNode?.kernel);
  }

  /** The kernel chosen, or the slowest one, so that a view never starts empty. */
  get shownKernel(): KernelView | undefined {
    const slow = (k: KernelView): number => this.median(k) ?? k.predicted_us ?? 0;
    return this.selectedKernel ?? [...this.view.kernels].sort((a, b) => slow(b) - slow(a))[0];
  }

  select(selection: string): void {
    if (selection === this.selection) return;
    this.selection = selection;
    const node = this.selectedNode;
    this.anchor = node ? { key: node.key, kernel: !selection.startsWith("n") } : null;
    this.emit("selection");
    this.model.set("selection", selection);
    this.model.save_changes();
  }

  show(tab: Tab): void {
    if (tab === this.tab) return;
    this.tab = tab;
    this.emit("tab");
    this.model.set("tab", tab);
    this.model.save_changes();
  }

  toggle(name: string, on: boolean): void {
    this.model.set("options", { ...(this.model.get("options") ?? {}), [name]: on });
    this.model.save_changes();
  }

  get timings(): ProgramView["timings"] {
    return this.live.timings ?? this.view.timings;
  }

  median(kernel: KernelView): number | null {
    return this.timings.rows.find((r) => r.kernel === kernel.id)?.median ?? kernel.median_us;
  }

  /** Names of a place in the user's code, as "In[3], line 4". */
  place(source: Source | null | undefined): string {
    return source ? `${source.cell}, line ${source.line}` : "made by the compiler";
  }

  /** Every node that the same line of the user made. */
  sameOrigin(node: NodeView | undefined): Set<number> {
    const origin = node?.source;
    if (!origin) return new Set(node ? [node.id] : []);
    const same = (n: NodeView): boolean =>
      n.source?.cell === origin.cell && n.source.line === origin.line && n.source.column === origin.column;
    return new Set(this.nodes.filter((n) => same(n) && n.composite === node.composite).map((n) => n.id));
  }

  matches(): string[] {
    const query = this.query.trim().toLowerCase();
    if (!query) return [];
    const hit = (texts: (string | null)[]): boolean => texts.some((t) => t?.toLowerCase().includes(query));
    const kernels = this.view.kernels.filter((k) => hit([k.id, k.label, k.kind])).map((k) => k.id);
    const nodes = this.nodes.filter((n) => hit([n.label, n.name, n.op, n.composite])).map((n) => `n${n.id}`);
    return [...kernels, ...nodes];
  }
}

/** What a node is unless the view says otherwise (`views.py` leaves the same out). */
const USUAL = {
  name: null,
  dtype: "f32",
  flops: 0,
  scope: "",
  composite: "",
  phase: "forward" as const,
  leaf: null,
  hidden: false,
  kernel: null,
};

/** Gives every node its place in the user's code, and a key made of what a recompile does not change. */
function named(view: ProgramView): NodeView[] {
  const seen = new Map<string, number>();
  return view.nodes.map((sent: SentNode, id): NodeView => {
    const source = view.sources[sent.source ?? -1] ?? null;
    const node = { ...USUAL, ...sent, id, source };
    const place = source ? `${source.cell}:${source.line}:${source.column}` : "";
    const key = [place, node.op, node.composite, node.phase, node.name ?? ""].join(":");
    const nth = (seen.get(key) ?? 0) + 1;
    seen.set(key, nth);
    return { ...node, key: `${key}:${nth}` };
  });
}
