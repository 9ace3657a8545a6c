import { once } from 'node:events';
import { request } from 'node:http';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import type { HttpSession } from '../support/http-session.ts';
import { waitFor } from '../support/wait-for.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

const PATH = '/instances/ins_1';

let web: StartedWeb;
let browser: HttpSession;
let other: HttpSession;

beforeEach(async () => {
  web = await startWeb(web ? { redis: web.redis } : {});
  browser = web.browser();
  other = web.browser();
  await install(browser);
  await install(other);
});

afterEach(() => {
  vi.restoreAllMocks();
});

/** Begins a download. */
async function begin() {
  const cookie = `${SESSION_COOKIE}=${browser.cookies.get(new URL(web.url), SESSION_COOKIE)}`;
  const asked = request(`${web.url}${PATH}/contacts.ndjson`, { headers: { cookie } }).end();
  // That it breaks off is told more than once.
  asked.on('error', () => undefined);
  const [answer] = await once(asked, 'response');
  return answer.on('error', () => undefined).setEncoding('utf8');
}

async function press(from: HttpSession, page: string, action: string): Promise<void> {
  const form = (await from.get(page)).form(action);
  expect((await from.submit(form, {}, { follow: false })).status).toBe(303);
}

it.each<[string, () => Promise<void>]>([
  ['its browser has logged out', () => press(browser, '/', '/logout')],
  ['another has logged it out', () => press(other, PATH, `${PATH}/logout-others`)],
  ['another has disconnected the company', () => press(other, PATH, `${PATH}/disconnect`)],
])('a download whose client takes nothing of it breaks off soon when %s', async (_what, end) => {
  const { promise: isBrokenOff, resolve: brokenOff } = Promise.withResolvers<void>();
  web.domain.stream = async function* () {
    try {
      for (;;) yield 'x'.repeat(100_000);
    } finally {
      brokenOff();
    }
  };
  const answer = await begin();
  answer.pause();
  await end();
  await isBrokenOff;
  // The rest is not the whole.
  await expect(once(answer.resume(), 'end')).rejects.toThrow();
});

it.each<[string, () => Promise<unknown>]>([
  ['has installed another company', () => install(browser, 'ins_2')],
  ['has disconnected the company itself', () => press(browser, PATH, `${PATH}/disconnect`)],
])('a download goes on whose browser %s', async (_what, act) => {
  const copied = Promise.withResolvers<void>();
  web.domain.stream = async function* () {
    yield 'x'.repeat(100_000);
    await copied.promise;
    yield 'copied later';
  };
  const answer = await begin();
  let body = '';
  answer.on('data', (text: string) => {
    body += text;
  });
  await act();
  const looks = vi.spyOn(web.domain.control, 'accessGeneration');
  await waitFor(() => looks.mock.calls.length >= 2);
  copied.resolve();
  await once(answer, 'end');
  expect(body.endsWith('copied later\n')).toBe(true);
});
