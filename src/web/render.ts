import { fileURLToPath } from 'node:url';
import { Eta } from 'eta';
import type { Response } from 'express';
import { formatInstant, formatNumber } from './view/format.ts';
import type { AppInfo } from './web-dependencies.ts';

export const VIEWS_DIRECTORY = fileURLToPath(new URL('../../views', import.meta.url));

/** What every page may show. */
export interface PageFacts extends AppInfo {
  /** Absolute: the cookie must belong to the host that the service sends the browser back to. */
  installUrl: string;
  isSandbox: boolean;
  sandboxUrl: string | null;
}

const ESCAPES: Record<string, string> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text for elements and quoted attributes. Missing values print nothing. */
function escapeText(value: unknown): string {
  if (value === undefined || value === null) return '';
  return String(value).replace(/[&<>"']/g, (character) => ESCAPES[character] ?? '');
}

/** Sends a page made from `views/<template>.eta`. */
export type RenderPage = (res: Response, status: number, template: string, data: object) => void;

/** @param cache keeps compiled templates; without it, a changed page shows on reload */
export function pageRenderer(site: PageFacts, cache: boolean, now: () => number): RenderPage {
  const eta = new Eta({ views: VIEWS_DIRECTORY, cache, escapeFunction: escapeText });
  return (res, status, template, data) => {
    const loadedAt = new Date(now()).toISOString();
    const facts = { site, requestId: res.locals.requestId, loadedAt, formatInstant, formatNumber };
    const html = eta.render(`./${template}`, { ...facts, ...data });
    res.status(status).type('html').send(html);
  };
}
