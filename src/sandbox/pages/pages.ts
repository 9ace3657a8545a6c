import type { Host } from '../host.ts';
import { type Answer, json, Problem } from '../http/answer.ts';
import type { Call } from '../http/call.ts';
import { findRoute, type Route } from '../http/router.ts';
import { frontPage } from './front-page.ts';
import { panelData } from './panel-data.ts';
import { asset } from './render.ts';

const STYLE = asset(
  'text/css; charset=utf-8',
  ...['base', 'controls', 'lists', 'panel'].map((subject) => `styles/${subject}.css`),
);

/** The control panel's modules: `/front.js` loads them all. */
const MODULES = [
  ...['applications', 'clock', 'companies', 'dom', 'fault-form', 'faults', 'gauges', 'journal', 'service'],
  ...['snapshots', 'tokens', 'words'],
];
const SCRIPTS = new Map(
  MODULES.map((name) => [`${name}.js`, asset('text/javascript; charset=utf-8', `panel/${name}.js`)]),
);
const FRONT_SCRIPT = asset('text/javascript; charset=utf-8', 'front.js');

function script(name: string): Answer {
  const found = SCRIPTS.get(name);
  if (found === undefined) throw new Problem(404, `There is no ${name} here.`);
  return found;
}

function data(host: Host, call: Call): Answer {
  const [after, resets] = ['after', 'resets'].map((name) => Number(call.query.get(name)) || 0);
  return json(200, panelData(host, after ?? 0, resets ?? 0), { 'cache-control': 'no-store' });
}

type Page = (host: Host, call: Call, params: Record<string, string>) => Answer;

const ROUTES: readonly Route<Page>[] = [
  { method: 'GET', path: '/', handle: frontPage },
  { method: 'GET', path: '/healthz', handle: () => json(200, { status: 'ok' }) },
  { method: 'GET', path: '/sandbox.css', handle: () => STYLE },
  { method: 'GET', path: '/front.js', handle: () => FRONT_SCRIPT },
  { method: 'GET', path: '/panel/:name', handle: (_host, _call, { name = '' }) => script(name) },
  { method: 'GET', path: '/panel.json', handle: data },
];

/** The pages for people, outside the service. Throws a `Problem` (404, 405). */
export function page(host: Host, call: Call): Answer {
  const { handle, params } = findRoute(ROUTES, call.method, call.path);
  return handle(host, call, params);
}
