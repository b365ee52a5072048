/** The anywidget module: `render` draws a live program; `mountStatic` the same without a kernel. */

import type { Model } from "./model.js";
import { mount, mountStatic } from "./mount.js";

export { mountStatic };

function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  return mount(model, el);
}

export default { render };
