import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Socket } from 'node:net';
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { STRAIGHT } from '../../src/service/agent.ts';
import { HttpClient } from '../../src/service/http.ts';

const REQUEST = { method: 'GET', url: new URL('https://service.invalid/contacts') } as const;

/** A proxy that takes connections, and does not answer who wants a tunnel. */
const wanted: Socket[] = [];
const proxy = createServer((socket) => {
  socket.on('error', () => undefined);
  socket.once('data', () => wanted.push(socket));
}).listen(0, '127.0.0.1');
await once(proxy, 'listening');
vi.stubEnv('HTTPS_PROXY', `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
beforeEach(() => {
  wanted.length = 0;
});
afterAll(() => {
  vi.unstubAllEnvs();
  proxy.close();
});

test('a proxy that once does not answer holds up its own request alone', async () => {
  const client = new HttpClient(300, undefined, { ...STRAIGHT, usesProxy: true });
  await expect(client.send(REQUEST)).rejects.toThrow(/did not answer/);
  await expect(client.send(REQUEST)).rejects.toThrow(/did not answer/);
  expect(wanted).toHaveLength(2);
  await client.close();
});

test('nor does it hold up the end', async () => {
  const client = new HttpClient(300, undefined, { ...STRAIGHT, usesProxy: true });
  await expect(client.send(REQUEST)).rejects.toThrow(/did not answer/);
  await expect(client.close()).resolves.toBeUndefined();
});
