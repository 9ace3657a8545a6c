import type { Host } from '../host.ts';
import type { Answer } from '../http/answer.ts';
import type { Call } from '../http/call.ts';
import { findRoute, type Route } from '../http/router.ts';
import { frontPage } from './front-page.ts';
import { asset } from './render.ts';

const STYLE = asset('sandbox.css', 'text/css; charset=utf-8');
const SCRIPT = asset('front.js', 'text/javascript; charset=utf-8');

const ROUTES: readonly Route<(host: Host) => Answer>[] = [
  { method: 'GET', path: '/', handle: frontPage },
  { method: 'GET', path: '/sandbox.css', handle: () => STYLE },
  { method: 'GET', path: '/front.js', handle: () => SCRIPT },
];

/** The pages for people, outside the service. Throws a `Problem` (404, 405). */
export function page(host: Host, call: Call): Answer {
  return findRoute(ROUTES, call.method, call.path).handle(host);
}
