import { connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { LiveOptions } from '../../src/web/live-streams.ts';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import type { HttpSession } from '../support/http-session.ts';
import { waitFor } from '../support/wait-for.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

/** The way to a browser takes in no more than a few states that are so large, in characters. */
const LARGE = 500_000;

let web: StartedWeb;
let browser: HttpSession;
let shutdown: AbortController;
const open: Socket[] = [];

async function start(live: Partial<LiveOptions>): Promise<void> {
  shutdown = new AbortController();
  web = await startWeb({
    ...(web ? { redis: web.redis } : {}),
    shutdown: shutdown.signal,
    live: { intervalMs: 20, ...live },
  });
  browser = web.browser();
  await install(browser);
}

beforeEach(async () => {
  await web?.redis.flushall();
});

afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy();
});

/** Asks for these addresses one after the other on one connection, without waiting for answers. */
function ask(paths: string[], session = browser): { socket: Socket; text(): string } {
  const { hostname, port } = new URL(web.url);
  const cookie = `${SESSION_COOKIE}=${session.cookies.get(new URL(web.url), SESSION_COOKIE)}`;
  const socket = connect(Number(port), hostname);
  open.push(socket);
  // A reset is one way to be cut off.
  socket.on('error', () => undefined);
  for (const path of paths) {
    socket.write(`GET ${path} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nCookie: ${cookie}\r\n\r\n`);
  }
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  return { socket, text: () => text };
}

/** Lets the status change at every look, with a name that begins like this. @returns how often it was looked at */
function keepChanging(name = 'x'.repeat(LARGE)): () => number {
  let looks = 0;
  const { status } = web.domain.control;
  web.domain.control.status = async (id) => {
    const known = await status(id);
    looks += 1;
    return known && { ...known, name: `${name} ${looks}` };
  };
  return () => looks;
}

/** Lets downloads stand still after their first portion. @returns what lets them go on */
function holdDownloads(): () => void {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  web.domain.stream = async function* () {
    yield 'x'.repeat(100_000);
    await released;
  };
  return release;
}

const CONTACTS = '/instances/ins_1/contacts.ndjson';
const LIVE = '/instances/ins_1/live';

const cutOff = () => web.log.lines.some(({ path, aborted }) => path === LIVE && aborted === true);
const mistakes = () => web.log.lines.filter(({ msg }) => msg === 'an answer could not be written');

async function logOut(): Promise<void> {
  await browser.submit((await browser.get('/')).form('/logout'));
}

it('a live stream of which its browser takes nothing is cut off at the next sign of life', async () => {
  await start({ keepAliveMs: 50 });
  keepChanging();
  ask([LIVE]).socket.pause();
  await waitFor(cutOff);
});

it('a live stream to a slow browser leaves out states in between, and brings the latest', async () => {
  await start({});
  const looks = keepChanging();
  const release = holdDownloads();
  const slow = ask([CONTACTS, LIVE]);
  await waitFor(() => looks() > 20);
  release();
  const latest = looks();
  const told = () => [...slow.text().matchAll(/"name":"x+ (\d+)"/g)].map(([, look]) => Number(look));
  await waitFor(() => told().some((look) => look > latest), { what: 'a state from after the wait' });
  expect(told().filter((look) => look <= latest).length).toBeLessThan(latest / 2);
});

it.each([
  ['session ends', logOut],
  ['instance is gone', async () => void web.domain.instances.delete('ins_1')],
])(
  'a live stream whose %s while it waits behind another answer leaves its place, and is written no more',
  async (_what, end) => {
    await start({ keepAliveMs: 50, maxStreams: 1, endMs: 60_000 });
    const other = web.browser();
    await install(other, 'ins_2');
    const release = holdDownloads();
    const { status } = web.domain.control;
    const looks = keepChanging('Acme');
    const stalled = ask([CONTACTS, LIVE]);
    // So often only what is watched is looked at.
    await waitFor(() => looks() > 5);
    web.domain.control.status = status;
    await end();
    const next = await waitFor(async () => {
      const asked = ask(['/instances/ins_2/live'], other);
      await waitFor(() => asked.text() !== '');
      return asked.text().startsWith('HTTP/1.1 200') && asked;
    });
    await waitFor(() => next.text().split('data: still here').length > 3);
    release();
    await waitFor(() => /retry: .*\r\n0\r\n\r\n$/s.test(stalled.text()), { what: 'the end of both answers' });
    expect(mistakes()).toEqual([]);
  },
);

it.each([
  ['session ends', logOut],
  ['instance is gone', async () => void web.domain.instances.delete('ins_1')],
  ['process ends', async () => shutdown.abort()],
])('a live stream whose %s is cut off soon when its browser takes nothing', async (_what, end) => {
  await start({ endMs: 100 });
  const { status } = web.domain.control;
  const looks = keepChanging();
  ask([LIVE]).socket.pause();
  await waitFor(() => looks() > 20);
  web.domain.control.status = status;
  await end();
  await waitFor(cutOff);
  expect(mistakes()).toEqual([]);
});
