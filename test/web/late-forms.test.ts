import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { beforeEach, expect, it } from 'vitest';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import type { HttpSession } from '../support/http-session.ts';
import { connectThroughGate, type RedisGate } from '../support/redis-gate.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

let gate: RedisGate;
let web: StartedWeb;
let browser: HttpSession;
beforeEach(async () => {
  gate ??= await connectThroughGate((await startTestRedis()).url);
  await gate.redis.flushall();
  web = await startWeb({ redis: gate.redis });
  browser = web.browser();
  await install(browser);
  await install(browser, 'ins_2');
});

/** Begins to send a form with a browser's cookie of now; the session has been read when this is answered. */
async function beginForm(
  path: string,
  fields: string,
  sender = browser,
): Promise<() => Promise<number | undefined>> {
  const read = gate.arm('session:', 'pass');
  const sent = request(web.url + path, {
    method: 'POST',
    headers: {
      cookie: `${SESSION_COOKIE}=${sender.cookies.get(new URL(web.url), SESSION_COOKIE)}`,
      'content-type': 'application/x-www-form-urlencoded',
      'content-length': fields.length,
    },
  });
  const answered = once(sent, 'response') as Promise<[IncomingMessage]>;
  sent.write(fields.slice(0, -1));
  await read;
  return async () => {
    sent.end(fields.slice(-1));
    const [answer] = await answered;
    answer.resume();
    expect(answer.headers['set-cookie'] ?? []).toEqual([]);
    return answer.statusCode;
  };
}

async function formFields(sender = browser): Promise<string> {
  const form = (await sender.get('/instances/ins_1')).form('/instances/ins_1/disconnect');
  return `${form.fields}&delete_data=yes`;
}

const seen = async () =>
  Promise.all(['ins_1', 'ins_2'].map(async (id) => (await browser.get(`/instances/${id}`)).status));

it.each(['sync', 'pause', 'disconnect', 'forget', 'logout-others'])(
  'a form to %s whose end comes after the log-out does nothing',
  async (action) => {
    const end = await beginForm(`/instances/ins_1/${action}`, await formFields());
    const before = [...web.domain.calls];
    await browser.submit((await browser.get('/')).form('/logout'));
    expect(await end()).toBe(403);
    expect(web.domain.calls).toEqual(before);
    expect(await web.redis.keys('session:*')).toEqual([]);
  },
);

it.each(['/instances/ins_1/disconnect', '/instances/ins_2/disconnect', '/logout'])(
  'a form to %s with a copy of the cookie, whose end comes after “Log out everywhere else”, does nothing',
  async (path) => {
    const end = await beginForm(path, await formFields());
    const page = await browser.get('/instances/ins_1');
    await browser.submit(page.form('/instances/ins_1/logout-others'));
    const before = [...web.domain.calls];
    expect(await end()).toBe(403);
    expect(web.domain.calls).toEqual(before);
    expect(await seen()).toEqual([200, 200]);
  },
);

it.each(['sync', 'pause', 'disconnect', 'forget', 'logout-others'])(
  'a form to %s of another browser, whose end comes after “Log out everywhere else”, does nothing',
  async (action) => {
    const other = web.browser();
    await install(other);
    const end = await beginForm(`/instances/ins_1/${action}`, await formFields(other), other);
    const page = await browser.get('/instances/ins_1');
    await browser.submit(page.form('/instances/ins_1/logout-others'));
    const before = [...web.domain.calls];
    expect(await end()).toBe(404);
    expect(web.domain.calls).toEqual(before);
    expect(await seen()).toEqual([200, 200]);
  },
);
