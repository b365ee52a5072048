/** The JupyterLab extension: programs in outputs are drawn live, or from what was saved. */

import type { JupyterFrontEnd, JupyterFrontEndPlugin } from "@jupyterlab/application";
import { INotebookTracker, type NotebookPanel } from "@jupyterlab/notebook";
import { IRenderMimeRegistry } from "@jupyterlab/rendermime";

import { factory, RANK } from "./renderer.js";

const renderer: JupyterFrontEndPlugin<void> = {
  id: "meganeura:renderer",
  description: "Draws Meganeura's programs, with their kernel or without.",
  autoStart: true,
  requires: [IRenderMimeRegistry],
  optional: [INotebookTracker],
  activate: (_: JupyterFrontEnd, rendermime: IRenderMimeRegistry, tracker: INotebookTracker | null) => {
    rendermime.addFactory(factory(null), RANK);
    const equip = (panel: NotebookPanel): void => {
      const { rendermime: own } = panel.content;
      own.addFactory(factory({ rendermime: own, session: panel.sessionContext }), RANK);
    };
    tracker?.forEach(equip);
    tracker?.widgetAdded.connect((_sender, panel) => equip(panel));
  },
};

export default [renderer];
