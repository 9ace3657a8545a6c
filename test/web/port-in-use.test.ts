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

test('a port that is taken is told with the variable that sets it', async () => {
  const taken = takePort({ host: '127.0.0.1', port, variable: 'WORKER_PORT' });
  await expect(taken).rejects.toThrow(`Port ${port} is in use: end what listens there, or set WORKER_PORT`);
});
