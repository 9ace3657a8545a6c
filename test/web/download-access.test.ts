import { once } from 'node:events';
import { request } from 'node:http';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import type { HttpSession } from '../support/http-session.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

/** Longer than access is not looked at, in milliseconds. */
const LATER_MS = 5_000;

let web: StartedWeb;
let browser: HttpSession;
let other: HttpSession;
let copied: PromiseWithResolvers<void>;

beforeEach(async () => {
  web = await startWeb(web ? { redis: web.redis } : {});
  browser = web.browser();
  other = web.browser();
  await install(browser);
  await install(other);
  copied = Promise.withResolvers();
  web.domain.stream = async function* () {
    yield 'x'.repeat(100_000);
    await copied.promise;
    yield 'copied later';
  };
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** Begins a download; resolves with what comes after something was done meanwhile, and whether that was the whole. */
async function download(meanwhile: () => Promise<unknown>): Promise<{ later: string; isWhole: boolean }> {
  const cookie = `${SESSION_COOKIE}=${browser.cookies.get(new URL(web.url), SESSION_COOKIE)}`;
  const asked = request(`${web.url}/instances/ins_1/contacts.ndjson`, { headers: { cookie } }).end();
  const [answer] = await once(asked, 'response');
  let body = '';
  answer.setEncoding('utf8').on('data', (text: string) => {
    body += text;
  });
  const ended = once(answer, 'end').then(
    () => true,
    () => false,
  );
  await once(answer, 'data');
  await meanwhile();
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + LATER_MS);
  copied.resolve();
  return { isWhole: await ended, later: body.replace(/^x*\n?/, '') };
}

async function press(from: HttpSession, page: string, action: string): Promise<void> {
  const form = (await from.get(page)).form(action);
  expect((await from.submit(form, {}, { follow: false })).status).toBe(303);
}

const OF_INSTANCE = '/instances/ins_1';

it.each<[string, () => Promise<void>]>([
  ['its browser has logged out', () => press(browser, '/', '/logout')],
  ['another has logged it out', () => press(other, OF_INSTANCE, `${OF_INSTANCE}/logout-others`)],
  ['another has disconnected the company', () => press(other, OF_INSTANCE, `${OF_INSTANCE}/disconnect`)],
])(
  'a download breaks off when %s, and nothing of what is copied later goes out',
  async (_what, meanwhile) => {
    expect(await download(meanwhile)).toEqual({ isWhole: false, later: '' });
  },
);

it.each<[string, () => Promise<unknown>]>([
  ['has installed another company', () => install(browser, 'ins_2')],
  ['has disconnected the company itself', () => press(browser, OF_INSTANCE, `${OF_INSTANCE}/disconnect`)],
])('a download goes on whose browser %s', async (_what, meanwhile) => {
  expect(await download(meanwhile)).toEqual({ isWhole: true, later: 'copied later\n' });
});
