/** The MIME renderer: the live view where its model lives, else the same drawing without a kernel. */

import type { ISessionContext } from "@jupyterlab/apputils";
import { type IRenderMimeRegistry, MimeModel } from "@jupyterlab/rendermime";
import type { IRenderMime } from "@jupyterlab/rendermime-interfaces";
import { Panel, Widget } from "@lumino/widgets";

import { MIME, type ProgramView } from "./model.js";
import { mountStatic } from "./mount.js";

const WIDGET = "application/vnd.jupyter.widget-view+json";
/** How long the live view may take to appear before the static drawing is shown meanwhile. */
const PATIENCE_MS = 200;
const GONE = new Set(["restarting", "autorestarting", "terminating", "dead"]);

/** Where outputs are shown: the registry that can draw widgets, and the session whose kernel owns them. */
export interface Surroundings {
  rendermime: IRenderMimeRegistry;
  session: ISessionContext;
}

/**
 * ipywidgets' renderer has rank -10 and shows "model not found" when its kernel is gone. This one has rank -20,
 * so it is asked first: it hands the widget view on to ipywidgets' renderer and shows that only once it has drawn
 * something.
 */
export class ProgramRenderer extends Panel implements IRenderMime.IRenderer {
  private clean: () => void = () => undefined;
  private still: Widget | undefined;
  private live: (Widget & IRenderMime.IRenderer) | undefined;
  private observer: MutationObserver | undefined;
  private view: ProgramView | undefined;

  constructor(private readonly around: Surroundings | null) {
    super();
    this.addClass("meganeura-program");
    around?.session.statusChanged.connect(this.onStatus, this);
  }

  async renderModel(model: IRenderMime.IMimeModel): Promise<void> {
    this.drop();
    this.view = model.data[MIME] as unknown as ProgramView;
    const drawn = this.delegate(model);
    const patience = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), PATIENCE_MS));
    if (!(await Promise.race([drawn, patience])) && !this.isDisposed && !this.live?.isVisible) this.drawStill();
  }

  override dispose(): void {
    if (this.isDisposed) return;
    this.around?.session.statusChanged.disconnect(this.onStatus, this);
    this.drop();
    super.dispose();
  }

  /** Starts the widget view off stage; true once it has drawn. An untrusted output gets no widget. */
  private async delegate(model: IRenderMime.IMimeModel): Promise<boolean> {
    const source = model.data[WIDGET] as { model_id?: string } | undefined;
    if (!this.around || !source?.model_id || !model.trusted || !this.around.session.session?.kernel) return false;
    let live: Widget & IRenderMime.IRenderer;
    try {
      live = this.around.rendermime.createRenderer(WIDGET) as Widget & IRenderMime.IRenderer;
    } catch {
      return false;
    }
    this.live = live;
    live.hide();
    this.addWidget(live);
    this.observer = new MutationObserver(() => this.look());
    this.observer.observe(live.node, { childList: true, subtree: true, characterData: true });
    await live.renderModel(new MimeModel({ data: { [WIDGET]: { ...source } }, trusted: true }));
    return this.look();
  }

  /** Compares what ipywidgets' renderer holds with what is on stage. */
  private look(): boolean {
    const { live } = this;
    if (!live || live.isDisposed) return false;
    const child = live instanceof Panel || "widgets" in live ? (live as unknown as Panel).widgets[0] : undefined;
    if (!child) return false;
    if (live.isHidden) {
      live.show();
      this.dropStill();
      child.disposed.connect(this.onGone, this);
    }
    return true;
  }

  private onGone(): void {
    if (this.isDisposed) return;
    this.dropLive();
    this.drawStill();
  }

  private onStatus(_: ISessionContext, status: string): void {
    if (GONE.has(status) && this.live && !this.live.isHidden) this.onGone();
  }

  private drawStill(): void {
    if (this.still || !this.view) return;
    this.still = new Widget();
    this.clean = mountStatic(this.view, this.still.node);
    this.addWidget(this.still);
  }

  private dropStill(): void {
    this.clean();
    this.clean = () => undefined;
    this.still?.dispose();
    this.still = undefined;
  }

  private dropLive(): void {
    this.observer?.disconnect();
    const { live } = this;
    this.live = undefined;
    live?.dispose();
  }

  private drop(): void {
    this.dropLive();
    this.dropStill();
  }
}

/** The factory for outputs that stand in these surroundings; safe, because every text is drawn as text. */
export function factory(around: Surroundings | null): IRenderMime.IRendererFactory {
  return { safe: true, mimeTypes: [MIME], createRenderer: () => new ProgramRenderer(around) };
}

export const RANK = -20;
