import { once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import { LONGEST_REQUEST_MS } from '../../src/web/session-changes.ts';
import type { HttpSession } from '../support/http-session.ts';
import { connectThroughGate } from '../support/redis-gate.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

const redisUrl = (await startTestRedis()).url;
const redis = new Redis(redisUrl);
afterAll(() => redis.disconnect());

let web: StartedWeb;
let browser: HttpSession;
beforeEach(async () => {
  await redis.flushall();
  web = await startWeb({ redis });
  browser = web.browser();
  await install(browser);
});

function cookieOf(session: HttpSession): string {
  return `${SESSION_COOKIE}=${session.cookies.get(new URL(web.url), SESSION_COOKIE)}`;
}

async function logOut() {
  return browser.submit((await browser.get('/')).form('/logout'), {}, { follow: false });
}

/** Opens a live stream and answers how to see that it has ended. */
async function watch(url: string, cookie: string): Promise<{ ended(): boolean; stream: ClientRequest }> {
  const stream = request(`${url}/instances/ins_1/live`, { headers: { cookie } }).end();
  const [answer] = await once(stream, 'response');
  expect(answer.statusCode).toBe(200);
  let ended = false;
  answer.resume().once('end', () => {
    ended = true;
  });
  return { ended: () => ended, stream };
}

it('ends the session on the server: the old cookie is worth nothing, the new page knows nobody', async () => {
  const cookie = cookieOf(browser);
  const answer = await logOut();
  expect(answer.status).toBe(303);
  expect(answer.location?.href).toBe(`${web.url}/`);
  expect(answer.headers.getSetCookie().join()).toMatch(
    new RegExp(`${SESSION_COOKIE}=;.*Expires=Thu, 01 Jan 1970.*HttpOnly.*SameSite=Lax`),
  );
  expect(await web.redis.keys('session:*')).toEqual([]);
  const front = await browser.get('/');
  expect(front.body).not.toContain('/instances/');
  expect(front.body).not.toContain('Log out');
  const thief = web.browser();
  for (const path of ['', '/status', '/set-aside', '/contacts', '/contacts.ndjson', '/live']) {
    expect((await thief.get(`/instances/ins_1${path}`, { headers: { cookie } })).status).toBe(404);
  }
  expect(web.domain.calls, 'the instance goes on').toEqual(['exchange ins_1']);
});

it('is remembered for longer than a request may take that had read the session before', async () => {
  await install(browser, 'ins_2');
  await logOut();
  const marks = await web.redis.keys('ended-session:*');
  // Two that installs have replaced, and the one that was logged out of.
  expect(marks).toHaveLength(3);
  for (const mark of marks) expect(await web.redis.pttl(mark)).toBeGreaterThan(LONGEST_REQUEST_MS);
});

it('leaves other browsers of the same company alone', async () => {
  const other = web.browser();
  await install(other);
  await logOut();
  expect((await other.get('/instances/ins_1')).status).toBe(200);
});

it('is not there for a visitor, and does nothing without the token of the session', async () => {
  expect((await web.browser().get('/')).forms()).toEqual([]);
  for (const fields of [{}, { _csrf: 'guess' }]) {
    expect((await browser.post('/logout', fields)).status).toBe(403);
  }
  expect((await browser.get('/logout')).status).toBe(404);
  expect((await browser.get('/instances/ins_1')).status).toBe(200);
});

it('is final: a request that had begun before does not bring the session back', async () => {
  const form = (await browser.get('/instances/ins_1')).form('/instances/ins_1/pause');
  const cookie = cookieOf(browser);
  const slow = request(`${web.url}/instances/ins_1/pause`, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/x-www-form-urlencoded', 'x-request-id': 'slow-request' },
  });
  const { status } = web.domain.control;
  const reached = Promise.withResolvers<void>();
  const loggedOut = Promise.withResolvers<void>();
  web.domain.control.status = async (id) => {
    reached.resolve();
    await loggedOut.promise;
    return status(id);
  };
  slow.end(form.fields.toString());
  await reached.promise;
  web.domain.control.status = status;
  await logOut();
  loggedOut.resolve();
  const [answer] = await once(slow, 'response');
  answer.resume();
  await waitFor(() => web.log.lines.some((line) => line.requestId === 'slow-request' && 'ms' in line));
  expect(await web.redis.keys('session:*')).toEqual([]);
  expect((await web.browser().get('/instances/ins_1', { headers: { cookie } })).status).toBe(404);
});

it('is final: the callback that led into the session leads into none any more, also with the cookie from before', async () => {
  const started = await browser.get('/install', { follow: false });
  const address = `/oauth/callback?code=ins_2&state=${started.location?.searchParams.get('state')}`;
  const headers = { cookie: cookieOf(browser) };
  await browser.get(address);
  const missed = web.browser();
  await missed.get(address, { headers, follow: false });
  expect((await missed.get('/instances/ins_2')).status, 'until then it does').toBe(200);
  await logOut();
  expect((await missed.get('/instances/ins_2')).status, 'it was the same session').toBe(404);
  const late = web.browser();
  const page = await late.get(address, { headers });
  expect(page.status).toBe(400);
  expect(page.body).toContain('This install cannot be finished');
  expect((await late.get('/instances/ins_2')).status).toBe(404);
  expect(await web.redis.keys('session:*')).toEqual([]);
  expect(web.domain.calls).toEqual(['exchange ins_1', 'exchange ins_2']);
});

it('is final: an install that was on its way brings its own company and none of those before', async () => {
  const front = await browser.get('/');
  const started = await browser.get('/install', { follow: false });
  const state = started.location?.searchParams.get('state');
  const { promise: loggedOut, resolve: goOn } = Promise.withResolvers<void>();
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  web.domain.exchange = () => {
    ask();
    return loggedOut;
  };
  const callback = browser.get(`/oauth/callback?code=ins_2&state=${state}`);
  await asked;
  await browser.submit(front.form('/logout'), {}, { follow: false });
  goOn();
  expect((await callback).url.pathname).toBe('/instances/ins_2');
  expect((await browser.get('/instances/ins_1')).status).toBe(404);
});

it('is final: of an install that is about to give the session a new id, its own company stays', async () => {
  const front = await browser.get('/');
  const started = await browser.get('/install', { follow: false });
  const { accessGeneration } = web.domain.control;
  const { promise: loggedOut, resolve: goOn } = Promise.withResolvers<void>();
  const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
  // It has read the session for the last time.
  web.domain.control.accessGeneration = async (id) => {
    reach();
    await loggedOut;
    return accessGeneration(id);
  };
  const callback = browser.get(
    `/oauth/callback?code=ins_2&state=${started.location?.searchParams.get('state')}`,
  );
  await reached;
  web.domain.control.accessGeneration = accessGeneration;
  const answer = await browser.submit(front.form('/logout'), {}, { follow: false });
  expect(answer.status).toBe(303);
  goOn();
  expect((await callback).url.pathname).toBe('/instances/ins_2');
  expect((await browser.get('/instances/ins_1')).status).toBe(404);
  expect((await browser.get('/instances/ins_2')).status).toBe(200);
});

it('is final: of a session that an install replaces while the log-out is on its way, nothing is left', async () => {
  const gate = await connectThroughGate((await startTestRedis()).url);
  web = await startWeb({ redis: gate.redis });
  browser = web.browser();
  await install(browser);
  const form = (await browser.get('/')).form('/logout');
  const started = await browser.get('/install', { follow: false });
  const cookie = cookieOf(browser);
  const read = gate.arm('session:', 'pass');
  const fields = form.fields.toString();
  const logOutRequest = request(`${web.url}/logout`, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/x-www-form-urlencoded', 'content-length': fields.length },
  });
  logOutRequest.flushHeaders();
  await read;
  const address = `/oauth/callback?code=ins_2&state=${started.location?.searchParams.get('state')}`;
  expect((await browser.get(address)).url.pathname).toBe('/instances/ins_2');
  logOutRequest.end(fields);
  const [answer] = await once(logOutRequest, 'response');
  answer.resume();
  expect(answer.statusCode).toBe(303);
  for (const id of ['ins_1', 'ins_2']) expect((await browser.get(`/instances/${id}`)).status, id).toBe(404);
  expect(await web.redis.keys('session:*')).toEqual([]);
});

it('is final: a form whose change of the session is on its way to Redis does not bring it back', async () => {
  const gate = await connectThroughGate(redisUrl);
  const slow = await startWeb({ redis: gate.redis, control: web.domain.control });
  const form = (await browser.get('/instances/ins_1')).form('/instances/ins_1/sync');
  const headers = { cookie: cookieOf(browser) };
  const held = gate.arm('A sync has been started.', 'hold');
  const late = slow.browser().post('/instances/ins_1/sync', form.fields, { headers, follow: false });
  await held;
  expect((await logOut()).status).toBe(303);
  gate.release();
  expect((await late).headers.getSetCookie()).toEqual([]);
  expect(await web.redis.keys('session:*')).toEqual([]);
  expect((await web.browser().get('/instances/ins_1', { headers })).status).toBe(404);
});

it('ends the open live streams of the session, here and at other processes, and no others', async () => {
  web = await startWeb({ redis: web.redis });
  const elsewhere = await startWeb({ redis: web.redis, live: { keepAliveMs: 50 } });
  browser = web.browser();
  const other = web.browser();
  await install(browser);
  await install(other);
  await install(elsewhere.browser());
  const mine = [await watch(web.url, cookieOf(browser)), await watch(elsewhere.url, cookieOf(browser))];
  const theirs = await watch(web.url, cookieOf(other));
  await logOut();
  await waitFor(() => mine.every(({ ended }) => ended()));
  expect(theirs.ended()).toBe(false);
  theirs.stream.destroy();
});

it('says that it cannot be told where Redis stands still, and what to do: it may be done all the same', async () => {
  const gate = await connectThroughGate((await startTestRedis()).url);
  web = await startWeb({ redis: gate.redis });
  browser = web.browser();
  await install(browser);
  const form = (await browser.get('/')).form('/logout');
  const held = gate.arm('ended-session:', 'hold');
  const pressed = browser.submit(form);
  await held;
  const page = await pressed;
  gate.release();
  expect(page.status).toBe(503);
  expect(page.body).toContain('It cannot be told whether this browser is logged out');
  expect(page.body).not.toContain('Nothing is lost');
  expect((await browser.get('/instances/ins_1')).status).toBe(404);
});
