import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Eta } from 'eta';
import type { Answer } from '../http/answer.ts';

const DIRECTORY = fileURLToPath(new URL('.', import.meta.url));
const eta = new Eta({ views: DIRECTORY, cache: true });

/**
 * No `form-action`: browsers hold it against every redirect that follows a form, and the consent form ends wherever the
 * application sends its user. The pages escape all that they show, so no foreign form can get in.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  'img-src data:',
  "base-uri 'none'",
  "frame-ancestors 'none'",
].join('; ');

const HEADERS = {
  'cache-control': 'no-store',
  'content-security-policy': POLICY,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
};

/** Renders a page from a template in this directory; the template escapes what it shows. */
export function renderPage(template: string, data: object, status = 200): Answer {
  return {
    status,
    headers: { 'content-type': 'text/html; charset=utf-8', ...HEADERS },
    body: eta.render(`./${template}`, data),
  };
}

/** Files of this directory, one after the other, as an answer; they are read once. */
export function asset(type: string, ...files: string[]): Answer {
  return {
    status: 200,
    headers: { 'content-type': type, 'cache-control': 'no-cache', 'x-content-type-options': 'nosniff' },
    body: files.map((file) => readFileSync(`${DIRECTORY}${file}`, 'utf8')).join('\n'),
  };
}
