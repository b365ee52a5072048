/** Which theme surrounds us: JupyterLab's and VS Code's own marks first, then Colab's, then the system's. */

export type Theme = "light" | "dark";

export function currentTheme(): Theme {
  const { body, documentElement: root } = document;
  const lab = body.dataset.jpThemeLight;
  if (lab !== undefined) return lab === "false" ? "dark" : "light";
  const code = body.dataset.vscodeThemeKind ?? body.className;
  if (/vscode-(dark|high-contrast(?!-light))/.test(code)) return "dark";
  if (/vscode-/.test(code)) return "light";
  const colab = root.getAttribute("theme");
  if (colab) return colab === "dark" ? "dark" : "light";
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** Keeps `data-theme` of an element true until the returned function is called. */
export function followTheme(element: HTMLElement): () => void {
  const apply = (): void => {
    element.dataset.theme = currentTheme();
  };
  apply();
  const observer = new MutationObserver(apply);
  const filter = ["class", "theme", "data-jp-theme-light", "data-vscode-theme-kind"];
  for (const target of [document.body, document.documentElement]) observer.observe(target, { attributes: true, attributeFilter: filter });
  const media = matchMedia("(prefers-color-scheme: dark)");
  media.addEventListener("change", apply);
  return () => {
    observer.disconnect();
    media.removeEventListener("change", apply);
  };
}
