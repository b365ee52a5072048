/** The time axis that Schedule and Memory share: one column a wave. */

import { END, MIDDLE, s, text } from "./dom.js";
import { figures, ticks } from "./format.js";
import type { ProgramView } from "./model.js";

export interface WaveSpan {
  x: number;
  /** Where the wave's work ends. */
  end: number;
  /** Where the next wave begins. */
  next: number;
}

export interface Axis {
  waves: WaveSpan[];
  x: (us: number) => number;
  /** Without times every launch is one unit wide and the axis has no scale. */
  timed: boolean;
  total: number;
  left: number;
  right: number;
}

export function makeAxis(view: ProgramView, left: number, right: number): Axis {
  const { launches, waves } = view.schedule;
  const timed = launches.length > 0 && launches.every((l) => l.start_us !== null && l.duration_us !== null);
  const start = (i: number): number => (timed ? (launches[i]?.start_us ?? 0) : (launches[i]?.wave ?? 0) * 1.25);
  const length = (i: number): number => (timed ? (launches[i]?.duration_us ?? 0) : 1);
  const ends = launches.map((_, i) => start(i) + length(i));
  const total = Math.max(...ends, 1e-9);
  const x = (us: number): number => left + (us / total) * (right - left);
  const spans = waves.map((members) => {
    const from = Math.min(...members.map(start));
    return { x: x(from), end: x(Math.max(...members.map((i) => ends[i] ?? 0))), next: 0 };
  });
  spans.forEach((span, i) => (span.next = spans[i + 1]?.x ?? right));
  return { waves: spans, x, timed, total, left, right };
}

export function scale(axis: Axis, y: number): SVGGElement {
  const g = s("g", {}, s("line", { x1: axis.left, x2: axis.right, y1: y, y2: y, class: "rule strongline" }));
  if (!axis.timed) {
    g.append(text(axis.left, y + 16, "no times yet: one unit a launch", "dim"));
    return g;
  }
  for (const t of ticks(axis.total, 7)) {
    if (axis.x(t) > axis.right - 30) continue;
    g.append(s("line", { x1: axis.x(t), x2: axis.x(t), y1: y, y2: y + 4, class: "rule strongline" }), text(axis.x(t), y + 17, figures(t), "dim", MIDDLE));
  }
  g.append(text(axis.right, y + 17, "µs", "dim", END));
  return g;
}

/** Grey columns behind everything, named at the top. */
export function waveColumns(axis: Axis, top: number, bottom: number, names: boolean): SVGGElement {
  const g = s("g");
  axis.waves.forEach((span, i) => {
    const w = span.end - span.x;
    g.append(s("rect", { x: span.x, y: top, width: Math.max(1, w), height: bottom - top, class: "sunk" }));
    if (names && w > 16) g.append(text(span.x + w / 2, top + 14, w > 48 ? `wave ${i}` : w > 30 ? `w ${i}` : String(i), "strong", MIDDLE));
  });
  return g;
}
