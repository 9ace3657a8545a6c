import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import express, { type Express } from 'express';
import { afterEach, expect, test } from 'vitest';
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
async function connectTo(app: Express, patience: Partial<ClientPatience> = {}) {
  const address = { host: '127.0.0.1', port: 0, variable: 'PORT' } as const;
  const web = await takePort(address, { connectionsCheckingInterval: 20, ...patience });
  web.serve(() => app);
  const socket = connect(web.port, '127.0.0.1');
  opened.push({ web, socket });
  await once(socket, 'connect');
  socket.on('error', () => {});
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk;
  });
  // A reset is an end, too, which `once` would take for a failure.
  const closed = new Promise<void>((resolve) => void socket.once('close', () => resolve()));
  return { web, socket, closed, text: () => text };
}

test('a client that takes nothing of its download is cut off, and the download ends', async () => {
  const ended = Promise.withResolvers<void>();
  const app = express().get('/', (_req, res) => {
    res.once('close', ended.resolve);
    const more = () => {
      while (res.write('x'.repeat(64 * 1_024)));
    };
    res.on('drain', more);
    more();
  });
  const client = await connectTo(app, { silentMs: 300 });
  client.socket.pause();
  client.socket.write('GET / HTTP/1.1\r\nHost: app.example\r\n\r\n');
  await ended.promise;
});

test('a client that does not let its request end is cut off when the process ends', async () => {
  const asked = Promise.withResolvers<void>();
  const app = express().get('/', () => asked.resolve());
  const client = await connectTo(app);
  client.socket.write('GET / HTTP/1.1\r\nHost: app.example\r\n\r\n');
  await asked.promise;
  const from = performance.now();
  await client.web.close();
  expect(performance.now() - from).toBeLessThan(6_000);
});

test('an idle connection outlives a proxy’s, and a stop ends it at once', async () => {
  const answer = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const app = express().get('/', (_req, res) => void res.end('served'));
  app.get('/slow', async (_req, res) => {
    begun.resolve();
    await answer.promise;
    res.end('served at last');
  });
  const client = await connectTo(app);
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
