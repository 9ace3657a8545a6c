import { existsSync } from 'node:fs';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Eta } from 'eta';
import type { Response } from 'express';
import { formatInstant, formatNumber } from './view/format.ts';
import type { AppInfo, Site } from './web-dependencies.ts';

export const VIEWS_DIRECTORY = fileURLToPath(new URL('../../views', import.meta.url));

interface PageFacts extends AppInfo {
  /** Absolute: the cookie must belong to the host that the service sends the browser back to. */
  installUrl: string;
  isSandbox: boolean;
  sandboxUrl: string | null;
}

/** Sends a page made from `views/<template>.eta`. */
export type RenderPage = (res: Response, status: number, template: string, data: object) => void;

/** What the routes of pages share. */
export interface Pages {
  renderPage: RenderPage;
  site: Site;
  /** Milliseconds since 1970, local clock. */
  now: () => number;
}

/**
 * @param ownViews the fork's pages: one there wins over the app's of the same name
 * @param options.cache keeps compiled templates; without it, a changed page shows on reload
 */
export function pageRenderer(
  site: PageFacts,
  ownViews: string | undefined,
  { cache, now }: { cache: boolean; now: () => number },
): RenderPage {
  // Missing values print nothing. Then Eta escapes text for elements and quoted attributes.
  const filterFunction = (value: unknown) => String(value ?? '');
  const eta = new Eta({ views: VIEWS_DIRECTORY, cache, autoFilter: true, filterFunction });
  if (ownViews !== undefined) preferViews(eta, ownViews);
  return (res, status, template, data) => {
    const loadedAt = new Date(now()).toISOString();
    const facts = { site, requestId: res.locals.requestId, loadedAt, formatInstant, formatNumber };
    const html = eta.render(`./${template}`, { ...facts, ...data });
    res.status(status).type('html').send(html);
  };
}

/** Lets Eta look into a second folder first. Names in a page of either folder mean both. */
function preferViews(eta: Eta, folder: string): void {
  const resolve = eta.resolvePath.bind(eta);
  eta.resolvePath = (template, { filepath, ...options } = {}) => {
    const from = filepath?.startsWith(folder) ? join(VIEWS_DIRECTORY, relative(folder, filepath)) : filepath;
    const path = resolve(template, from === undefined ? options : { ...options, filepath: from });
    const own = join(folder, relative(VIEWS_DIRECTORY, path));
    return existsSync(own) ? own : path;
  };
}
