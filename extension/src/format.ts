/** Numbers as people read them: three figures, thousands with a comma, binary units, a space before the unit. */

export function figures(value: number): string {
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString("en-US");
  if (size >= 100) return value.toFixed(0);
  if (size >= 1) return value.toFixed(size >= 10 ? 1 : 2).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "");
  if (size === 0) return "0";
  return size < 1e-3 ? value.toExponential(1) : value.toPrecision(2);
}

export function count(value: number): string {
  return value.toLocaleString("en-US");
}

/** A time without its unit: always with one decimal below 100, so that a column of them lines up. */
export function decimal(value: number): string {
  return value >= 100 || value < 0.1 ? figures(value) : value.toFixed(value >= 10 ? 1 : 2).replace(/(\.\d)0$/, "$1");
}

export function time(us: number | null | undefined): string {
  if (us === null || us === undefined) return "–";
  if (us >= 1e6) return `${decimal(us / 1e6)} s`;
  if (us >= 1000) return `${decimal(us / 1000)} ms`;
  return `${decimal(us)} µs`;
}

export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0;
  while (value >= 1024 && i < units.length - 1) [value, i] = [value / 1024, i + 1];
  return `${i ? figures(value) : value} ${units[i]}`;
}

export function flops(value: number): string {
  for (const [size, unit] of [[1e12, "Tflop"], [1e9, "Gflop"], [1e6, "Mflop"], [1e3, "kflop"]] as const)
    if (value >= size) return `${figures(value / size)} ${unit}`;
  return `${value} flop`;
}

export function shape(dims: readonly number[]): string {
  return dims.length ? dims.join("×") : "scalar";
}

export function plural(n: number, noun: string): string {
  return `${count(n)} ${noun}${n === 1 ? "" : "s"}`;
}

/** Ticks at 1, 2 or 5 times a power of ten, about `wanted` of them up to `high`. */
export function ticks(high: number, wanted: number): number[] {
  if (!(high > 0)) return [0];
  const raw = high / wanted;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((m) => m * power >= raw)! * power;
  const found: number[] = [];
  for (let i = 0; i * step <= high * 1.0001; i++) found.push(i * step);
  return found;
}
