import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import { afterAll, expect, test } from 'vitest';
import { takePort } from '../../src/web/listen.ts';

const holder = createServer();
await new Promise<void>((resolve) => holder.listen(0, '127.0.0.1', resolve));
const { port } = holder.address() as AddressInfo;
afterAll(() => void holder.close());

test('a port without an app yet says that the process is alive, and starting; then the app answers', async () => {
  const taken = await takePort({ host: '127.0.0.1', port: 0, variable: 'PORT' });
  const get = (path: string) => fetch(`http://127.0.0.1:${taken.port}${path}`);
  const early = await Promise.all(['/healthz', '/readyz', '/'].map(get));
  expect(early.map(({ status }) => status)).toEqual([200, 503, 503]);
  expect(early.map(({ headers }) => headers.get('retry-after'))).toEqual([null, '5', '5']);
  expect(await early[1]?.json()).toEqual({ status: 'starting' });
  taken.serve(() => express().get('/readyz', (_req, res) => void res.send('the app')));
  expect(await (await get('/readyz')).text()).toBe('the app');
  await taken.close();
});

test.each(['PORT', 'WORKER_PORT'] as const)(
  'a port that is in use is told with where it was set: %s',
  async (variable) => {
    const taking = takePort({ host: '127.0.0.1', port, variable });
    await expect(taking).rejects.toThrow(
      `Port ${port} is in use: end what listens there, or set ${variable} to another one.`,
    );
  },
);

test.each(['192.0.2.1', 'nowhere.invalid'])(
  'a host that this machine does not have is told with where it was set: %s',
  async (host) => {
    const taking = takePort({ host, port: 0, variable: 'WORKER_PORT' });
    await expect(taking).rejects.toThrow(`${host} is no address of this machine: set HOST to one that is.`);
  },
);
