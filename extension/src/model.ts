/** The program view, version 1: all that a drawing needs, as plain JSON (docs/view-contract.md says who makes each part). */

export const MIME = "application/vnd.meganeura.program+json";

export type Phase = "forward" | "backward" | "update";
export type Kind = "matmul" | "map" | "reduce" | "attention" | "gather" | "other";
export type Tab = "graph" | "passes" | "kernels" | "schedule" | "memory" | "timings" | "loss" | "table";

/** A sentence with its lead in bold. */
export type Sentence = [lead: string, rest: string];

export interface Header {
  name: string;
  kind: "training step" | "inference";
  device: string;
  backend: string;
  /** "numpy" when no adapter runs the kernels: times are then predictions only. */
  device_kind: "hardware" | "software" | "numpy";
  launches: number;
  waves: number;
  /** Median time of a step on the device in µs, or null before anything was measured. */
  step_us: number | null;
  predicted_us: number | null;
  compile_ms: number;
  memory_bytes: number;
  /** A plain sentence that must be seen (no adapter, a broken run), or null. */
  note: string | null;
}

export interface Toggle {
  name: string;
  on: boolean;
  title: string;
}

export interface Source {
  cell: string;
  line: number;
  column: number;
  end_line: number;
  end_column: number;
  text: string;
}

/** A node as the views use it. */
export interface NodeView {
  /** Its place in the list. */
  id: number;
  /** The same across recompiles as long as the user's code is. */
  key: string;
  op: string;
  label: string;
  name: string | null;
  shape: number[];
  dtype: string;
  bytes: number;
  flops: number;
  scope: string;
  composite: string;
  phase: Phase;
  leaf: "input" | "parameter" | "state" | "constant" | null;
  /** A view or a number: not drawn as an operation of its own. */
  hidden: boolean;
  inputs: number[];
  kernel: string | null;
  source: Source | null;
}

/** A node as it is sent: its id is its index, its source an index into `sources`; what is usual is left out. */
export type SentNode = Partial<Omit<NodeView, "id" | "key" | "source">> &
  Pick<NodeView, "op" | "label" | "shape" | "bytes" | "inputs"> & { source?: number };

export interface TensorRef {
  node: number;
  label: string;
  bytes: number;
}

export interface KernelView {
  id: string;
  label: string;
  kind: Kind;
  phase: Phase;
  scope: string;
  nodes: number[];
  inputs: TensorRef[];
  outputs: TensorRef[];
  tile: string;
  /** 32-bit registers an invocation is assumed to need. */
  registers: number;
  grid: number[];
  workgroup: number[];
  workgroup_bytes: number;
  workgroup_limit: number;
  reads: number;
  writes: number;
  /** Bytes that the same nodes would move with one launch each. */
  unfused: number;
  flops: number;
  /** Index into `modules`. */
  wgsl: number;
  /** WGSL line (from 1) to the nodes it computes. */
  lines: Record<string, number[]>;
  predicted_us: number | null;
  median_us: number | null;
  p5_us: number | null;
  p95_us: number | null;
  limited_by: string;
  /** Writes that replace a leaf on the device: "W1, b1". */
  in_place: string[];
}

export interface Item {
  /** A node id, or a kernel id in the view by scope. */
  ref: number | string;
  text: string;
  x: number;
  y: number;
  w: number;
  h: number;
}

export interface BoxView {
  id: string;
  /** kernel: opens a kernel; group: a scope; node: one node; feed, parameter, output: ports. */
  role: "kernel" | "group" | "node" | "feed" | "parameter" | "output";
  ref: number | string;
  kind: Kind;
  phase: Phase;
  title: string;
  subtitle: string;
  note: string;
  x: number;
  y: number;
  w: number;
  h: number;
  items: Item[];
  wires: number[][];
}

export interface WireView {
  from: string;
  to: string;
  node: number;
  points: number[];
  gradient: boolean;
  /** Text and its centre, or null. */
  label: [text: string, x: number, y: number] | null;
}

export interface Picture {
  width: number;
  height: number;
  columns: [label: string, x: number, w: number, y: number][];
  rows: [label: string, y: number][];
  boxes: BoxView[];
  wires: WireView[];
  /** What was left out, in words, or "". */
  omitted: string;
}

export type Grouping = "kernel" | "scope" | "flat";

export type Change = "same" | "added" | "removed" | "changed";

export interface PassNode {
  label: string;
  shape: string;
  state: Change;
  before: boolean;
  after: boolean;
  x: number;
  y: number;
  w: number;
  h: number;
  source: Source | null;
}

export interface PassPicture {
  width: number;
  height: number;
  nodes: PassNode[];
  wires: { from: number; to: number; points: number[]; before: boolean; after: boolean }[];
  shown: string;
}

export interface Rule {
  name: string;
  equation: string;
  english: string;
  /** Matches, and those of them that the cost chose. */
  count: number;
  applied: number;
  saved: string;
  /** Lines of the user on which it matched. */
  lines: string[];
}

export interface EClass {
  id: number;
  shape: number[];
  name: string | null;
  enodes: { op: string; children: number[]; cost: number; extracted: boolean; rule: string | null }[];
}

export interface EGraph {
  classes: EClass[];
  total_classes: number;
  total_enodes: number;
}

export interface PassView {
  name: string;
  ms: number;
  /** Nodes before and after, or null for passes above the graph. */
  before: number | null;
  after: number | null;
  added: number;
  removed: number;
  changed: number;
  /** The mark under the station: "+17", "12 tiles". */
  mark: string;
  /** One line of facts. */
  summary: string;
  rules: Rule[];
  picture: PassPicture | null;
  columns: string[];
  rows: string[][];
  /** The classes in which a rule found a second form, of a pass that rewrites. */
  egraph: EGraph | null;
  sentence: Sentence;
}

export interface Launch {
  kernel: string;
  wave: number;
  slot: number;
  waits_for: number[];
  start_us: number | null;
  duration_us: number | null;
  measured: boolean;
}

export interface ScheduleView {
  launches: Launch[];
  waves: number[][];
  total_us: number | null;
}

export interface Placement {
  node: number;
  label: string;
  buffer: number;
  first: number;
  last: number;
  bytes: number;
}

export interface MemoryView {
  buffers: number[];
  placements: Placement[];
  /** Live bytes while each launch runs. */
  live: number[];
  peak: number;
  planned: number;
  unaliased: number;
  resident: number;
  /** Resident bytes by use. */
  held: [label: string, bytes: number][];
}

export interface TimingRow {
  kernel: string;
  median: number | null;
  p5: number | null;
  p25: number | null;
  p75: number | null;
  p95: number | null;
  predicted: number | null;
}

export interface TimingsView {
  rows: TimingRow[];
  steps: number;
  sum_us: number | null;
  step_us: number | null;
  parts: [label: string, us: number][];
}

export interface RunView {
  name: string;
  detail: string;
  status: "running" | "done" | "interrupted" | "broken";
  step: number;
  steps: number;
  rate: number | null;
  /** Step and loss, at most 2,000 points. */
  points: [number, number][];
  /** Further curves by name, such as a validation metric. */
  curves: Record<string, [number, number][]>;
}

export interface ProgramView {
  version: 1;
  header: Header;
  toggles: Toggle[];
  nodes: SentNode[];
  sources: Source[];
  kernels: KernelView[];
  /** The WGSL texts: each line once, each text as numbers of lines. */
  modules: { lines: string[]; texts: number[][] };
  pictures: Partial<Record<Grouping, Picture>>;
  passes: PassView[];
  schedule: ScheduleView;
  memory: MemoryView;
  timings: TimingsView;
  runs: RunView[];
  cells: Record<string, string>;
  sentences: Partial<Record<Tab, Sentence>> & { kernel: Record<string, Sentence> };
  caption: string;
  saved: string;
}

/** What changes while a run is going; the rest of the view stays. */
export interface Live {
  run?: RunView;
  timings?: TimingsView;
  step_us?: number | null;
  elapsed_s?: number;
  left_s?: number;
  views_cost?: number;
  sentence?: Sentence;
}

/** What the widget is doing: idle, compiling with the pass and the count, or an error. */
export interface Status {
  state: "idle" | "compiling" | "error";
  pass?: string;
  index?: number;
  count?: number;
  seconds?: number;
  title?: string;
  where?: string;
  code?: string;
  caret?: [column: number, end: number];
  details?: string[];
  hint?: string;
}

/** The traits of the anywidget model. */
export interface Traits {
  view: ProgramView | null;
  selection: string;
  tab: Tab;
  options: Record<string, boolean>;
  live: Live;
  status: Status;
  height: number;
}

/** What render() needs of a model: anywidget's, or the static stand-in. */
export interface Model {
  get<K extends keyof Traits>(name: K): Traits[K] | undefined;
  set<K extends keyof Traits>(name: K, value: Traits[K]): void;
  save_changes(): void;
  on(event: string, callback: () => void): void;
  off(event: string, callback?: () => void): void;
}
