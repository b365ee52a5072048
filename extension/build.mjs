/** Bundles the drawing core: the anywidget module, and with --lab the entry of the JupyterLab extension. */
import { build, transform } from "esbuild";
import { mkdir, readFile } from "node:fs/promises";

/** A style sheet is imported as its minified text. */
const styles = {
  name: "styles",
  setup(builder) {
    builder.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { code } = await transform(await readFile(path, "utf8"), { loader: "css", minify: true });
      return { contents: code.trim(), loader: "text" };
    });
  },
};

/** Names that nothing outside the bundle knows. */
const inner =
  /^(draw[A-Z]\w*|selected(Kernel|Node)|shownKernel|sameOrigin|chosenLaunch|legendRow|listeners|isStatic|store|stage|layer|pane|prefix|uncover|places|pending|owner|touched|focusPlace|focusables|waveList|comparison|walkTabs)$/;

const common = {
  mangleProps: inner,
  bundle: true,
  format: "esm",
  target: "es2022",
  plugins: [styles],
  logLevel: "warning",
  legalComments: "none",
};

if (process.argv.includes("--lab")) {
  await mkdir("lib", { recursive: true });
  await build({ ...common, entryPoints: ["src/lab.ts"], outfile: "lib/lab.js", external: ["@jupyterlab/*", "@lumino/*"] });
} else {
  const outfile = "../meganeura/notebook/static/workbench.js";
  await build({ ...common, entryPoints: ["src/index.ts"], outfile, minify: true, charset: "utf8" });
}
