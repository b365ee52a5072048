"""Helper functions in WGSL for operations that the language lacks or leaves undefined."""

from __future__ import annotations

import re

_F32: dict[str, str] = {
    "mg_tanh": """
fn mg_tanh(x: T) -> T {
  return tanh(clamp(x, T(-15.0), T(15.0)));
}""",
    "mg_sign": """
fn mg_sign(x: T) -> T {
  return sign(x);
}""",
    "mg_mod": """
fn mg_mod(x: T, y: T) -> T {
  return x - y * floor(x / y);
}""",
    "mg_erf": """
// Near 0 the Taylor series; further out 1 - t exp(-x^2 + p(t)), t = 1 / (1 + |x| / 2),
// after Press et al., Numerical Recipes, 6.2.
fn mg_erf(x: T) -> T {
  let a = abs(x);
  let t = 1.0 / (1.0 + 0.5 * a);
  let high = 0.27886807 + t * (-1.13520398 + t * (1.48851587 + t * (-0.82215223 + t * 0.17087277)));
  let low = 1.00002368 + t * (0.37409196 + t * (0.09678418 + t * (-0.18628806 + t * high)));
  let far = 1.0 - t * exp(t * low - 1.26551223 - a * a);
  let s = a * a;
  let tail = -0.02686617 + s * (0.00522398 - s * 0.00085483);
  let near = a * (1.12837917 + s * (-0.37612639 + s * (0.11283792 + s * tail)));
  return sign(x) * select(far, near, a < T(0.5));
}""",
    "mg_pow": """
// A negative base has a real power only at whole exponents; 0 to the power of 0 is 1.
fn mg_pow(x: T, y: T) -> T {
  let size = pow(abs(x), y);
  let odd = abs(y - 2.0 * floor(y * 0.5)) == T(1.0);
  let real = select(size, -size, (x < T(0.0)) & odd);
  let undefined = (x < T(0.0)) & (floor(y) != y);
  let nan = bitcast<T>(U(0x7fc00000u));
  let zero = select(T(0.0), bitcast<T>(U(0x7f800000u)), y < T(0.0));
  let base = select(select(real, nan, undefined), zero, x == T(0.0));
  return select(base, T(1.0), y == T(0.0));
}""",
    "mg_random": """
// 32 random bits of (index, seed, stream): PCG3D, Jarzynski and Olano, 2020.
fn mg_random(index: u32, seed: u32, stream: u32) -> u32 {
  var v = vec3<u32>(index, seed, stream) * 1664525u + 1013904223u;
  v.x += v.y * v.z;
  v.y += v.z * v.x;
  v.z += v.x * v.y;
  v ^= v >> vec3<u32>(16u);
  v.x += v.y * v.z;
  return v.x;
}""",
}


def needed(text: str) -> str:
    """The helpers that a kernel's text calls, each once, in their scalar and vector forms."""
    parts = []
    called = set(re.findall(r"\bmg_\w+(?=\()", text))
    for name, source in _F32.items():
        if name in called:
            parts.append(source.replace("bitcast<T>(U(", "bitcast<f32>((").replace("T", "f32"))
        if f"{name}4" in called:
            vector = source.replace(f"fn {name}(", f"fn {name}4(").replace(
                "bitcast<T>(U(", "bitcast<T>(vec4<u32>("
            )
            parts.append(re.sub(r"\bT\b", "vec4<f32>", vector))
    return "\n".join(parts)
