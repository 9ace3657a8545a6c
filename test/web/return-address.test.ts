import { beforeEach, expect, it } from 'vitest';
import type { HttpSession } from '../support/http-session.ts';
import { AUTHORIZE_URL } from './fake-domain.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

const EVIL = [
  '//evil.example',
  '/\\evil.example',
  '\\\\evil.example',
  'https://evil.example',
  '%2f%2fevil.example',
  '/%5cevil.example',
  '/%09/evil.example',
  'javascript:alert(1)',
];
const NAMES = ['return_to', 'next', 'redirect', 'redirect_uri', 'url', 'back'];
const HEADERS = {
  referer: 'https://evil.example/',
  'x-forwarded-host': 'evil.example',
  'x-original-url': '//evil.example',
};
const OPTIONS = { follow: false, headers: HEADERS };

let web: StartedWeb;
let browser: HttpSession;
beforeEach(async () => {
  web = await startWeb(web ? { redis: web.redis } : {});
  browser = web.browser();
  await install(browser);
});

it.each(EVIL)('no way back leads to %s: every redirect is a local path, or the service', async (evil) => {
  const query = NAMES.map((name) => `${name}=${encodeURIComponent(evil)}&${name}_raw=${evil}`).join('&');
  const started = await browser.get(`/install?${query}`, OPTIONS);
  expect(started.location?.href).toMatch(new RegExp(`^${AUTHORIZE_URL}\\?state=[\\w-]+$`));
  const callback = `/oauth/callback?state=${started.location?.searchParams.get('state')}&code=ins_1&${query}`;
  const first = await browser.get(callback, OPTIONS);
  const reload = await browser.get(callback, OPTIONS);
  const { fields } = (await browser.get('/instances/ins_1')).form('/instances/ins_1/sync');
  const acted = await browser.post(`/instances/ins_1/sync?${query}`, fields, OPTIONS);
  const paged = await browser.get(`/instances/ins_1/contacts?page=99&${query}`, OPTIONS);
  const loggedOut = await browser.post(`/logout?${query}`, fields, OPTIONS);
  const locations = [first, reload, acted, paged, loggedOut].map(({ headers }) => headers.get('location'));
  const dashboard = '/instances/ins_1';
  expect(locations).toEqual([dashboard, dashboard, dashboard, `${dashboard}/contacts`, '/']);
});

it.each([
  '//evil.example/install',
  '/\\evil.example/',
  '/%2f%2fevil.example',
  '/%5Cevil.example',
  '/.//evil.example',
])('the path %s leads nowhere', async (path) => {
  const answer = await browser.get(web.url + path, OPTIONS);
  expect(answer.headers.get('location')).toBeNull();
  expect(answer.body).not.toMatch(/href="[^"]*evil/);
});
