import { once } from 'node:events';
import { request } from 'node:http';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import type { HttpSession } from '../support/http-session.ts';
import { connectThroughGate, type RedisGate } from '../support/redis-gate.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';
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
});

const leave: (() => void)[] = [];
afterEach(() => {
  for (const one of leave.splice(0)) one();
});

async function watch(url: string, session: HttpSession) {
  const cookie = `${SESSION_COOKIE}=${session.cookies.get(new URL(web.url), SESSION_COOKIE)}`;
  const stream = request(`${url}/instances/ins_1/live`, { headers: { cookie } }).end();
  leave.push(() => stream.destroy());
  const [answer] = await once(stream, 'response');
  let text = '';
  answer.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  await waitFor(() => text.includes('Riverside Dental'));
  return { text: () => text, ended: () => answer.complete as boolean };
}

async function formToDisconnect() {
  return (await browser.get('/instances/ins_1')).form('/instances/ins_1/disconnect');
}

it('a disconnect that this browser’s session cannot be told of says what happened, and how to see the copy again', async () => {
  const form = await formToDisconnect();
  const held = gate.arm(':change', 'hold');
  const pressed = browser.submit(form);
  await held;
  const page = await pressed;
  gate.release();
  expect(page.status).toBe(503);
  expect(page.body).toContain('The company is disconnected.');
  expect(page.body).toContain('install it again to see the copy that was kept');
  expect(page.body).not.toContain('deleted');
  expect(web.domain.instances.get('ins_1')?.status).toBe('disconnected');
});

it.each<[string, 'disconnect' | 'pause', Record<string, string>, RegExp]>([
  [
    'disconnect that deletes the copy',
    'disconnect',
    { delete_data: 'yes' },
    /Disconnected\. .* The copied data is deleted\./,
  ],
  ['pause', 'pause', {}, /Paused\. Nothing is copied until you resume/],
])(
  'a %s that is done when Redis goes away says that it is, and leads to the dashboard',
  async (_what, action, fields, said) => {
    const form = (await browser.get('/instances/ins_1')).form(`/instances/ins_1/${action}`);
    const { control } = web.domain;
    const act = control[action] as (...args: unknown[]) => Promise<never>;
    control[action] = async (...args: unknown[]) => {
      const done = await act(...args);
      void gate.arm(':change', 'hold');
      return done;
    };
    const page = await browser.submit(form, fields);
    gate.release();
    expect(page.status).toBe(503);
    expect(page.body).toMatch(said);
    expect(page.body).toContain('The form need not be sent again.');
    expect(page.body).toContain('href="/instances/ins_1"');
    expect(page.body).not.toContain('Nothing is lost');
    expect(web.log.lines).toContainEqual(expect.objectContaining({ msg: 'instance action', action }));
  },
);

it('a disconnect whose copy cannot be deleted at the moment does not say that nothing was done', async () => {
  const { disconnect } = web.domain.control;
  web.domain.control.disconnect = async (...args) => {
    await disconnect(...args);
    throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
  };
  const page = await browser.submit(await formToDisconnect(), { delete_data: 'yes' });
  expect(page.status).toBe(503);
  expect(page.body).toContain('The company is disconnected. Its copied data is being deleted.');
  expect(page.body).not.toContain('nothing was done');
  const again = await browser.submit(await formToDisconnect(), { delete_data: 'yes' });
  expect(again.body).toContain('Its copied data is being deleted.');
  expect(again.body).not.toContain('The company is disconnected.');
});

it('a form that waits while another tab of its browser logs out everywhere else is too old, and does nothing', async () => {
  const page = await browser.get('/instances/ins_1');
  before(() => browser.submit(page.form('/instances/ins_1/logout-others')), 'pause');
  const answer = await browser.submit(page.form('/instances/ins_1/pause'));
  expect(answer.status).toBe(403);
  expect(answer.body).toContain('nothing was done');
  expect((await browser.get('/instances/ins_1')).status).toBe(200);
  expect(web.domain.instances.get('ins_1')?.status).toBe('active');
});

/** Lets something happen between a form's check and what it does. */
function before(meanwhile: () => Promise<unknown>, action: 'disconnect' | 'pause' = 'disconnect'): void {
  const { control } = web.domain;
  const act = control[action] as (...args: unknown[]) => Promise<boolean>;
  control[action] = async (...args: unknown[]) => {
    control[action] = act;
    await meanwhile();
    return act(...args);
  };
}

it('nor does any other form of a browser whose access ends while it waits', async () => {
  const other = web.browser();
  await install(other);
  const theirs = (await other.get('/instances/ins_1')).form('/instances/ins_1/logout-others');
  before(() => other.submit(theirs), 'pause');
  const form = (await browser.get('/instances/ins_1')).form('/instances/ins_1/pause');
  expect((await browser.submit(form)).status).toBe(404);
  expect(web.domain.instances.get('ins_1')?.status).toBe('active');
});

it('of two browsers that disconnect a company at once one does, and keeps what is left', async () => {
  const other = web.browser();
  await install(other);
  const theirs = (await other.get('/instances/ins_1')).form('/instances/ins_1/disconnect');
  before(() => other.submit(theirs));
  const page = await browser.submit(await formToDisconnect(), { delete_data: 'yes' });
  expect(page.status).toBe(404);
  expect(web.domain.calls).not.toContain('disconnect and delete ins_1');
  expect((await other.get('/instances/ins_1')).status).toBe(200);
});

it('of a form that is sent twice one is done, and the browser goes on seeing what is left', async () => {
  const form = await formToDisconnect();
  before(() => browser.submit(form));
  const page = await browser.submit(form, { delete_data: 'yes' });
  expect([page.status, page.url.pathname]).toEqual([200, '/instances/ins_1']);
  expect(page.body).toContain('Nothing was done.');
  expect(web.domain.calls.filter((call) => call.startsWith('disconnect'))).toEqual(['disconnect ins_1']);
});

it('a disconnect that comes to nothing, for want of the database, says so', async () => {
  web.domain.control.disconnect = async () => {
    throw Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' });
  };
  const page = await browser.submit(await formToDisconnect());
  expect(page.status).toBe(503);
  expect(page.body).toContain('nothing was done');
});

it.each([
  ['keeps', {}],
  ['deletes', { delete_data: 'yes' }],
])(
  'a disconnect that %s the copy ends the live streams of others, here and at other processes, before anything of what comes then',
  async (_what, fields: Record<string, string>) => {
    const live = { intervalMs: 20, keepAliveMs: 3_600_000 };
    web = await startWeb({ redis: gate.redis, live });
    const { control, installer } = web.domain;
    const elsewhere = await startWeb({ redis: gate.redis, live, control, installer });
    browser = web.browser();
    const other = web.browser();
    for (const session of [browser, other]) await install(session);
    const theirs = [await watch(web.url, other), await watch(elsewhere.url, other)];
    const { disconnect } = control;
    const deleted = Promise.withResolvers<void>();
    control.disconnect = async (...args) => {
      const isDone = await disconnect(...args);
      // The deletion of a large copy may take minutes, and another browser install the app meanwhile.
      const status = web.domain.instances.get('ins_1');
      if (status) web.domain.instances.set('ins_1', { ...status, status: 'active', name: 'Installed anew' });
      await deleted.promise;
      return isDone;
    };
    const pressed = browser.submit(await formToDisconnect(), fields, { follow: false });
    await waitFor(() => theirs.every(({ ended }) => ended()));
    deleted.resolve();
    expect((await pressed).status).toBe(303);
    for (const { text } of theirs) expect(text()).not.toContain('Installed anew');
  },
);
