import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import express, { type Express } from 'express';
import { afterEach, expect, test, vi } from 'vitest';
import { type ClientPatience, type TakenPort, takePort } from '../../src/web/listen.ts';
import { waitFor } from '../support/wait-for.ts';

const opened: { web: TakenPort; socket: Socket }[] = [];

afterEach(async () => {
  for (const { web, socket } of opened.splice(0)) {
    socket.destroy();
    await web.close();
  }
});

/** Serves an app with little patience, and opens a bare connection to it. */
async function connectTo(app: Express, patience: Partial<ClientPatience>) {
  const web = await takePort(
    { host: '127.0.0.1', port: 0, variable: 'PORT' },
    { checkEveryMs: 20, ...patience },
  );
  web.serve(() => app);
  const socket = connect(web.port, '127.0.0.1');
  opened.push({ web, socket });
  await once(socket, 'connect');
  socket.on('error', () => {});
  let text = '';
  // A reset is an end, too, which `once` would take for a failure.
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  return {
    web,
    socket,
    closed,
    text: () => text,
    read: () =>
      socket.on('data', (chunk) => {
        text += chunk;
      }),
  };
}

test('a client that drips its headers is answered with 408, and its connection ends', async () => {
  const client = await connectTo(express(), { headersMs: 300 });
  client.read();
  client.socket.write('GET / HTTP/1.1\r\nHost: app.example\r\n');
  const drip = setInterval(() => client.socket.write('X-Slow: 1\r\n'), 40);
  await client.closed;
  clearInterval(drip);
  expect(client.text()).toMatch(/^HTTP\/1\.1 408 /);
});

test('a client that drips its form is cut off, and others are served meanwhile', async () => {
  const app = express().post('/form', express.urlencoded({ extended: false }), (_req, res) => void res.end());
  app.get('/', (_req, res) => void res.end('served'));
  const client = await connectTo(app, { headersMs: 300, requestMs: 400 });
  client.read();
  client.socket.write('POST /form HTTP/1.1\r\nHost: app.example\r\nContent-Length: 1000\r\n');
  client.socket.write('Content-Type: application/x-www-form-urlencoded\r\n\r\na=');
  const drip = setInterval(() => client.socket.write('x'), 40);
  const other = await fetch(`http://127.0.0.1:${client.web.port}/`);
  expect(await other.text()).toBe('served');
  await client.closed;
  clearInterval(drip);
  expect(client.text()).not.toContain('200 OK');
});

test('a client that takes nothing of its download is cut off, and the download ends', async () => {
  let ended = false;
  const app = express().get('/', (_req, res) => {
    res.once('close', () => {
      ended = true;
    });
    const more = () => {
      while (res.write('x'.repeat(64 * 1_024)));
    };
    res.on('drain', more);
    more();
  });
  const client = await connectTo(app, { silentMs: 300 });
  client.socket.pause();
  client.socket.write('GET / HTTP/1.1\r\nHost: app.example\r\n\r\n');
  await waitFor(() => ended, { what: 'the server to give up' });
});

test('the app does so without being told', async () => {
  const client = await connectTo(express(), {});
  client.read();
  client.socket.write('GET / HTTP/1.1\r\nHost: app.example\r\n');
  const drip = setInterval(() => client.socket.write('X-Slow: 1\r\n'), 500);
  await client.closed;
  clearInterval(drip);
  expect(client.text()).toMatch(/^HTTP\/1\.1 408 /);
});

test('a client that does not let its request end is cut off when the process ends, well within its ten seconds', async () => {
  const asked = Promise.withResolvers<void>();
  const client = await connectTo(
    express().get('/', () => asked.resolve()),
    {},
  );
  client.socket.write('GET / HTTP/1.1\r\nHost: app.example\r\n\r\n');
  await asked.promise;
  // It is closed here.
  opened.pop();
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const closing = client.web.close();
    vi.advanceTimersByTime(5_000);
    expect(vi.getTimerCount(), 'what it still waits for').toBe(0);
    await closing;
  } finally {
    vi.useRealTimers();
    client.socket.destroy();
  }
});

test('a connection without a request is kept for longer than a proxy keeps one, and ended by a stop at once', async () => {
  const answer = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const app = express().get('/', (_req, res) => void res.end('served'));
  app.get('/slow', async (_req, res) => {
    begun.resolve();
    await answer.promise;
    res.end('served at last');
  });
  const client = await connectTo(app, {});
  client.read();
  client.socket.write('GET / HTTP/1.1\r\nHost: app.example\r\n\r\n');
  await waitFor(() => client.text().endsWith('served'));
  expect(Number(/^Keep-Alive: timeout=(\d+)\r$/m.exec(client.text())?.[1])).toBeGreaterThan(75);

  let isOver = false;
  const slow = fetch(`http://127.0.0.1:${client.web.port}/slow`).finally(() => {
    isOver = true;
  });
  await begun.promise;
  const closed = client.web.close();
  await client.closed;
  expect(isOver).toBe(false);
  answer.resolve();
  expect(await (await slow).text()).toBe('served at last');
  await closed;
});

/** Several requests at once, as one that asks ahead sends them. */
const ahead = (...paths: string[]) =>
  paths.map((path) => `GET ${path} HTTP/1.1\r\nHost: app.example\r\n\r\n`).join('');

test('requests that a client sends ahead are dealt with when the answer before them has ended', async () => {
  const held = Promise.withResolvers<void>();
  const came: string[] = [];
  const app = express().use((req, res) => {
    came.push(req.url);
    if (req.url === '/held') void held.promise.then(() => res.end('held'));
    else res.end(`after ${came.join(' ')}`);
  });
  const client = await connectTo(app, {});
  client.read();
  client.socket.write(ahead('/held', '/second', '/third'));
  await waitFor(() => came.length > 0);
  const other = await fetch(`http://127.0.0.1:${client.web.port}/other`);
  expect(await other.text()).toBe('after /held /other');
  held.resolve();
  await waitFor(() => client.text().includes('after /held /other /second /third'));
  expect(client.text().indexOf('held')).toBeLessThan(client.text().indexOf('/second'));
});

test('one that sends a flood of them ahead is cut off', async () => {
  const came: string[] = [];
  const app = express().use((req) => void came.push(req.url));
  const client = await connectTo(app, {});
  client.socket.write(ahead(...Array.from({ length: 30 }, (_, n) => `/${n}`)));
  await client.closed;
  expect(came).toEqual(['/0']);
});

test('a request that was sent ahead has no more patience than any other, whatever the one before it took', async () => {
  const app = express();
  app.get('/long', (req, res) => {
    req.setTimeout(60_000);
    res.end('long');
  });
  const hung = Promise.withResolvers<void>();
  app.get('/hangs', () => hung.resolve());
  const client = await connectTo(app, { silentMs: 200 });
  client.read();
  client.socket.write(ahead('/long', '/hangs'));
  await hung.promise;
  await client.closed;
  expect(client.text()).toMatch(/long$/);
});
