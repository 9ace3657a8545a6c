import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Eta } from 'eta';
import type { Answer } from '../http/answer.ts';

const MORPH = 'idiomorph.esm.js';

/** Files that pages load, with their media types. */
const ASSETS = { 'panel.css': 'text/css', 'panel.js': 'text/javascript', [MORPH]: 'text/javascript' };

/** All files lie beside this module; outside the package, idiomorph's lies in its own. */
function locate(file: string): string {
  const beside = join(import.meta.dirname, file);
  return file === MORPH && !existsSync(beside) ? fileURLToPath(import.meta.resolve('idiomorph')) : beside;
}

const eta = new Eta({ views: import.meta.dirname, cache: true });

/**
 * No `form-action`: browsers apply it to redirects after a form, and the consent form redirects to the application.
 * Pages escape all values, so no foreign form can get in.
 */
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " +
  "base-uri 'none'; frame-ancestors 'none'";

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

function answer(type: string, body: string, status = 200): Answer {
  return { status, headers: { 'content-type': `${type}; charset=utf-8`, ...HEADERS }, body };
}

/** Renders a page from a template; the template escapes what it shows. */
export function renderPage(template: string, data: object, status = 200): Answer {
  return answer('text/html', eta.render(`./${template}`, data), status);
}

/** The content of these files by path, read once. */
export const ASSET_ANSWERS = Object.entries(ASSETS).map(([file, type]): [path: string, answer: Answer] => [
  `/${file}`,
  answer(type, readFileSync(locate(file), 'utf8')),
]);
