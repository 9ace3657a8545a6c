import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { HttpSession } from '../support/http-session.ts';
import { waitFor } from '../support/wait-for.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';
import { instanceStatus, listStatus } from './status-fixtures.ts';

const SESSION_COOKIE = 'partner_app.sid';

interface Stream {
  answer: IncomingMessage;
  text(): string;
  /** What it has brought after the mark of the forms. */
  events(): Record<string, unknown>[];
  ended(): boolean;
  leave(): void;
}

const LIVE = '/instances/ins_1/live';

let web: StartedWeb;
let browser: HttpSession;
let shutdown: AbortController;
const open: ClientRequest[] = [];

beforeEach(async () => {
  shutdown = new AbortController();
  web = await startWeb({
    ...(web ? { redis: web.redis } : {}),
    shutdown: shutdown.signal,
    live: {
      intervalMs: 20,
      keepAliveMs: 50,
      maxStreams: 5,
      maxStreamsPerBrowser: 3,
      maxStreamsPerInstance: 4,
    },
  });
  browser = web.browser();
  await install(browser);
});

afterEach(() => {
  for (const stream of open.splice(0)) stream.destroy();
});

function ask(session: HttpSession, path = LIVE): ClientRequest {
  const cookie = `${SESSION_COOKIE}=${session.cookies.get(new URL(web.url), SESSION_COOKIE)}`;
  const stream = request(`${web.url}${path}`, { headers: { cookie } }).end();
  stream.on('error', () => {});
  open.push(stream);
  return stream;
}

async function whetherThereIsRoom(): Promise<number> {
  const cookie = `${SESSION_COOKIE}=${browser.cookies.get(new URL(web.url), SESSION_COOKIE)}`;
  return (await fetch(`${web.url}${LIVE}`, { method: 'HEAD', headers: { cookie } })).status;
}

async function watch(session = browser, path = LIVE): Promise<Stream> {
  const stream = ask(session, path);
  const [answer]: IncomingMessage[] = await once(stream, 'response');
  if (!answer) throw new Error('no answer');
  let text = '';
  let ended = false;
  answer.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  answer.once('end', () => {
    ended = true;
  });
  return {
    answer,
    text: () => text,
    events: () => [...text.matchAll(/^data: (\{.*)$/gm)].map(([, data = '']) => JSON.parse(data)),
    ended: () => ended,
    leave: () => stream.destroy(),
  };
}

describe('the live stream', () => {
  it('sends the state at once, and again only when it has changed', async () => {
    const early = instanceStatus({ now: '2025-06-10T12:00:10.000Z' });
    web.domain.instances.set('ins_1', early);
    const stream = await watch();
    expect(stream.answer.headers['content-type']).toMatch(/^text\/event-stream/);
    await waitFor(() => stream.events().length === 1);
    const [first] = stream.events();
    const { view, ...status } = first ?? {};
    expect(status).toEqual(early);
    expect(view).toMatchObject({ text: { 'state.label': 'Up to date' } });
    // The clock alone is no change: several looks later nothing new has come.
    web.domain.instances.set('ins_1', instanceStatus({ now: '2025-06-10T12:00:40.000Z' }));
    await waitFor(() => stream.text().split('data: still here').length > 3);
    expect(stream.events()).toHaveLength(1);
    const contacts = listStatus({ state: 'running', records: 5 });
    web.domain.instances.set('ins_1', instanceStatus({ resources: { contacts } }));
    await waitFor(() => stream.events().length >= 2);
    expect(stream.events()[1]).toMatchObject({ resources: { contacts: { records: 5 } } });
  });

  it('ends when the instance is gone', async () => {
    const stream = await watch();
    web.domain.instances.delete('ins_1');
    await waitFor(() => stream.ended());
    expect(stream.text()).toContain('event: gone\n');
  });

  it('brings nothing of a look in whose course, before it read, its access ended', async () => {
    const stream = await watch();
    await waitFor(() => stream.events().length === 1);
    const { status } = web.domain.control;
    web.domain.control.status = async (id) => {
      // Somebody is quicker than the look that has begun.
      await web.domain.browsers.logOutOthers('nobody', id);
      web.domain.instances.set(id, instanceStatus({ name: 'Installed anew' }));
      return status(id);
    };
    await waitFor(() => stream.ended());
    expect(stream.text()).not.toContain('Installed anew');
  });

  it('ends when the app ends', async () => {
    const stream = await watch();
    shutdown.abort();
    await waitFor(() => stream.ended());
    expect((await watch()).answer.statusCode).toBe(503);
    expect((await browser.get('/readyz')).status).toBe(503);
  });

  it('says so when it cannot look, and goes on when it can again, also when nothing has changed', async () => {
    const contacts = listStatus({ state: 'running', records: 5 });
    web.domain.instances.set('ins_1', instanceStatus({ resources: { contacts } }));
    const stream = await watch();
    await waitFor(() => stream.events().length === 1);
    const { status } = web.domain.control;
    web.domain.control.status = async () => {
      throw new Error('the store is away');
    };
    await waitFor(() => stream.events().length === 2);
    expect(stream.text()).toMatch(/^event: outage\ndata: /m);
    expect(stream.events()[1]).toMatchObject({
      view: {
        text: {
          'state.headline': 'The app cannot reach its own store, so nothing new is copied.',
          'contacts.state': 'Not known',
          'budget.remaining': '–',
        },
        attributes: { 'state.tone': { 'data-tone': 'bad' } },
        show: { 'contacts.pace': false, 'contacts.bar': false },
      },
    });
    // Once, however often it looks.
    await waitFor(() => stream.text().split('data: still here').length > 3);
    expect(stream.events()).toHaveLength(2);
    web.domain.control.status = status;
    await waitFor(() => stream.events().length === 3);
    expect(stream.events()[2]).toMatchObject({ view: { text: { 'state.label': 'Syncing' } } });
    expect(web.log.lines.filter((line) => line.msg === 'live status failed')).toHaveLength(1);
  });

  it('is limited a session, and frees its place', async () => {
    const streams = [await watch(), await watch(), await watch()];
    const refused = await watch();
    expect(refused.answer.statusCode).toBe(429);
    expect(refused.answer.headers['retry-after']).toBe('30');
    // Scripts do not learn from a stream why it was refused.
    expect(await whetherThereIsRoom()).toBe(429);
    streams[0]?.leave();
    await waitFor(async () => (await whetherThereIsRoom()) === 200);
  });

  it('is limited an instance, whoever watches it, and others are not held up', async () => {
    const other = web.browser();
    await install(other);
    await install(other, 'ins_2');
    const streams: Stream[] = [];
    for (const session of [browser, browser, browser, other]) streams.push(await watch(session));
    expect((await watch(other)).answer.statusCode).toBe(429);
    expect((await watch(other, LIVE.replace('ins_1', 'ins_2'))).answer.statusCode).toBe(200);
    for (const stream of streams.slice(0, 2)) stream.leave();
    await waitFor(async () => (await watch(other)).answer.statusCode === 200);
  });

  it('is limited in all', async () => {
    const other = web.browser();
    await install(other, 'ins_2');
    const path = LIVE.replace('ins_1', 'ins_2');
    const streams: Stream[] = [];
    for (let times = 0; times < 3; times++) streams.push(await watch());
    for (let times = 0; times < 2; times++) streams.push(await watch(other, path));
    expect((await watch(other, path)).answer.statusCode).toBe(503);
    streams[0]?.leave();
    await waitFor(async () => (await watch(other, path)).answer.statusCode === 200);
  });

  it('looks at an instance once for all who watch, and not when nobody does', async () => {
    let looks = 0;
    const { status } = web.domain.control;
    const streams = [await watch(), await watch()];
    await waitFor(() => streams.every((stream) => stream.events().length === 1));
    for (const stream of streams) stream.leave();
    await waitFor(() => web.log.lines.filter((line) => line.path === LIVE).length === 2);
    web.domain.control.status = (id) => {
      looks += 1;
      return status(id);
    };
    const later = await watch();
    await waitFor(() => later.text().includes('data: still here'));
    later.leave();
    await waitFor(() => web.log.lines.filter((line) => line.path === LIVE).length === 3);
    const seen = looks;
    await browser.get('/healthz');
    expect(seen).toBeGreaterThan(1);
    expect(looks - seen).toBeLessThanOrEqual(1);
  });
});
