import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { beforeEach, expect, it } from 'vitest';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import type { HttpSession } from '../support/http-session.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

let web: StartedWeb;
let elsewhere: StartedWeb;
let browser: HttpSession;
beforeEach(async () => {
  web ??= await startWeb();
  elsewhere ??= await startWeb({ redis: web.redis });
  await web.redis.flushall();
  browser = web.browser();
  await install(browser);
  elsewhere.domain.instances.set('ins_1', web.domain.instances.get('ins_1') as never);
});

const ofSession = new RegExp(`^${SESSION_COOKIE}=`);

function cookies(answer: { headers: Headers }): string[] {
  return answer.headers.getSetCookie().filter((cookie) => ofSession.test(cookie));
}

/** What another tab does, which is answered only when `meanwhile` is over: by the cookie from before. */
async function answeredLate(
  at: StartedWeb,
  ask: { method: string; path: string; form?: URLSearchParams },
  meanwhile: () => Promise<unknown>,
): Promise<IncomingMessage> {
  const cookie = `${SESSION_COOKIE}=${browser.cookies.get(new URL(web.url), SESSION_COOKIE)}`;
  const { status } = at.domain.control;
  const reached = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  at.domain.control.status = async (id) => {
    reached.resolve();
    await over.promise;
    return status(id);
  };
  const headers = { cookie, 'content-type': 'application/x-www-form-urlencoded' };
  const late = request(at.url + ask.path, { method: ask.method, headers }).end(ask.form?.toString());
  const answered = once(late, 'response');
  await reached.promise;
  at.domain.control.status = status;
  await meanwhile();
  over.resolve();
  const [answer] = (await answered) as [IncomingMessage];
  answer.resume();
  return answer;
}

function sessionCookies(answer: IncomingMessage): string[] {
  return (answer.headers['set-cookie'] ?? []).filter((cookie) => ofSession.test(cookie));
}

const syncForm = async () => (await browser.get('/instances/ins_1')).form('/instances/ins_1/sync').fields;

/** As if the browser had had its cookie for a day. */
async function aDayPasses(): Promise<void> {
  for (const name of await web.redis.keys('session-cookie:*')) {
    expect(await web.redis.ttl(name)).toBeLessThanOrEqual(86_400);
    await web.redis.del(name);
  }
}

it.each([
  ['a form', 'this process', 'POST', '/instances/ins_1/sync'],
  ['a form', 'another process', 'POST', '/instances/ins_1/sync'],
  ['a page', 'this process', 'GET', '/instances/ins_1'],
  ['a page', 'another process', 'GET', '/instances/ins_1'],
])(
  '%s that %s answers after another tab has installed leaves the browser its newer cookie',
  async (_what, where, method, path) => {
    const form = method === 'POST' ? await syncForm() : undefined;
    await aDayPasses();
    const at = where === 'this process' ? web : elsewhere;
    const answer = await answeredLate(at, { method, path, ...(form ? { form } : {}) }, () =>
      install(browser, 'ins_2'),
    );
    expect(answer.statusCode).toBe(method === 'POST' ? 303 : 200);
    expect(sessionCookies(answer)).toEqual([]);
    for (const id of ['ins_1', 'ins_2']) expect((await browser.get(`/instances/${id}`)).status).toBe(200);
  },
);

it.each(['GET', 'POST'])(
  'an answer to %s that comes after the log-out brings no cookie back',
  async (method) => {
    const form = method === 'POST' ? await syncForm() : undefined;
    const front = await browser.get('/');
    await aDayPasses();
    const path = method === 'POST' ? '/instances/ins_1/sync' : '/instances/ins_1';
    const answer = await answeredLate(web, { method, path, ...(form ? { form } : {}) }, () =>
      browser.submit(front.form('/logout'), {}, { follow: false }),
    );
    expect(sessionCookies(answer)).toEqual([]);
    expect(browser.cookies.get(new URL(web.url), SESSION_COOKIE)).toBeUndefined();
    expect(await web.redis.keys('session:*')).toEqual([]);
  },
);

it('who comes again keeps the cookie: the first page of a day renews it for 30 days, and no other answer sets it', async () => {
  expect(cookies(await install(browser, 'ins_2')), 'the callback has just set it').toEqual([]);
  const form = await syncForm();
  await aDayPasses();
  expect(cookies(await browser.post('/instances/ins_1/sync', form, { follow: false }))).toEqual([]);
  const [renewed = '', ...more] = cookies(await browser.get('/instances/ins_1'));
  expect(more).toEqual([]);
  const value = browser.cookies.get(new URL(web.url), SESSION_COOKIE);
  expect(renewed.startsWith(`${SESSION_COOKIE}=${value}; Path=/; Expires=`)).toBe(true);
  const until = Date.parse(/Expires=([^;]+)/.exec(renewed)?.[1] ?? '');
  expect(Math.round((until - Date.now()) / 86_400_000)).toBe(30);
  expect(cookies(await browser.get('/instances/ins_1'))).toEqual([]);
});

it('every visit keeps the session for another 30 days', async () => {
  const [name = ''] = await web.redis.keys('session:*');
  await web.redis.expire(name, 60);
  await browser.get('/instances/ins_1/status');
  expect(await web.redis.ttl(name)).toBeGreaterThan(29 * 86_400);
});
