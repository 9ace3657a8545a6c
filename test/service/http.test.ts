import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import net, { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { text } from 'node:stream/consumers';
import * as zlib from 'node:zlib';
import { afterAll, expect, test, vi } from 'vitest';
import { HttpClient } from '../../src/service/http.ts';
import { findFreePort } from '../support/free-port.ts';
import { failureOf } from './failure-of.ts';

const MEGABYTE = 1024 * 1024;

type Handle = (request: IncomingMessage, response: ServerResponse) => unknown;

const seen: IncomingMessage[] = [];
let handle: Handle = () => {};
const server = createServer((request, response) => {
  seen.push(request);
  handle(request, response);
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const http = new HttpClient();
const impatient = new HttpClient({ timeoutMs: 200 });

afterAll(async () => {
  await Promise.all([http.close(), impatient.close()]);
  server.closeAllConnections();
  server.close();
});

const get = (client = http, signal?: AbortSignal) =>
  client.send({ method: 'GET', url: new URL(`${origin}/contacts?limit=100`) }, signal);

test('an answer is read to its end, whatever its status', async () => {
  handle = (_request, response) => {
    response.setHeader('X-Mixed-Case', 'kept').setHeader('retry-after', ['1', '58']);
    response.setHeader('x-other', ['1', '2']).writeHead(418);
    response.write('\ufeff{"name":"Zo');
    setImmediate(() => response.end('ë"}'));
  };
  const answer = await get();
  expect(answer).toMatchObject({ status: 418, body: '{"name":"Zoë"}' });
  expect(answer.headers).toMatchObject({ 'x-mixed-case': 'kept', 'retry-after': '1, 58', 'x-other': '1' });
  expect(seen.at(-1)).toMatchObject({ method: 'GET', url: '/contacts?limit=100' });
  expect(seen.at(-1)?.headers).toMatchObject({ accept: 'application/json', 'user-agent': 'partner-app' });
});

test.each(['POST', 'DELETE'] as const)('a %s sends its body', async (method) => {
  const got = Promise.withResolvers<string>();
  handle = async (request, response) => {
    got.resolve(await text(request));
    response.writeHead(201).end('{}');
  };
  const url = new URL(`${origin}/tags`);
  const headers = { authorization: 'Bearer x' };
  const answer = await http.send({ method, url, target: "/tags?a='", headers, body: '{"name":"Zoë"}' });
  expect(answer.status).toBe(201);
  expect(await got.promise).toBe('{"name":"Zoë"}');
  expect(seen.at(-1)).toMatchObject({ method, url: "/tags?a='" });
  expect(seen.at(-1)?.headers).toMatchObject({ 'content-type': 'application/json', ...headers });
});

test.each<[string, (text: string) => Buffer]>([
  ['gzip', zlib.gzipSync],
  ['X-GZIP', zlib.gzipSync],
  ['deflate', zlib.deflateSync],
  ['deflate', zlib.deflateRawSync],
  ['br', zlib.brotliCompressSync],
  ['zstd', zlib.zstdCompressSync],
  [' Identity ', Buffer.from],
  ['', Buffer.from],
])('an answer packed as %j is read, though the app asks for none', async (coding, pack) => {
  handle = (request, response) => {
    expect(request.headers['accept-encoding']).toBe('identity');
    response.writeHead(200, { 'content-encoding': coding }).end(pack('{"name":"Zoë"}'));
  };
  expect((await get()).body).toBe('{"name":"Zoë"}');
});

test('an answer in several frames or members is read to its end', async () => {
  for (const [coding, pack] of [
    ['zstd', zlib.zstdCompressSync],
    ['gzip', zlib.gzipSync],
  ] as const) {
    const body = Buffer.concat(['{"name":', '"Zoë"', '}'].map((part) => pack(part)));
    handle = (_request, response) => response.writeHead(200, { 'content-encoding': coding }).end(body);
    expect((await get()).body).toBe('{"name":"Zoë"}');
  }
});

test('an answer may have 20 KB of headers, as behind a proxy', async () => {
  handle = (_request, response) => response.setHeader('x-trace', 'x'.repeat(20 * 1024)).end('{}');
  expect((await get()).body).toBe('{}');
});

const packed = (coding: string, bytes: Buffer | string) => (_request: unknown, response: ServerResponse) =>
  response.writeHead(200, { 'content-encoding': coding }).end(bytes);
const bomb = Buffer.alloc(100 * MEGABYTE, ' ');

test.each<[string, Handle, RegExp]>([
  ['pours', (_request, response) => response.end(bomb), /larger than 32 megabytes/],
  ['is a gzip bomb', packed('gzip', zlib.gzipSync(bomb, { level: 1 })), /larger than 32 megabytes/],
  ['is a zstd bomb', packed('zstd', zlib.zstdCompressSync(bomb)), /larger than 32 megabytes/],
  [
    'is a zstd bomb in frames',
    packed('zstd', Buffer.concat(Array(5).fill(zlib.zstdCompressSync(bomb.subarray(0, 8 * MEGABYTE))))),
    /larger than 32 megabytes/,
  ],
  [
    'has more than its frames',
    packed('zstd', Buffer.concat([zlib.zstdCompressSync('{}'), bomb.subarray(0, 9)])),
    /is damaged \(zstd\)/,
  ],
  ['is cut short when packed', packed('gzip', zlib.gzipSync('{}').subarray(0, -9)), /is damaged \(gzip\)/],
  ['is packed in an unknown way', packed('compress', '{}'), /cannot unpack it \(compress\)/],
])('an answer that %s is a bad one', async (_what, answer, message) => {
  handle = answer;
  const before = process.memoryUsage().rss;
  const error = await failureOf(get());
  expect(error).toMatchObject({ kind: 'bad_answer', message: expect.stringMatching(message) });
  expect(process.memoryUsage().rss - before).toBeLessThan(150 * MEGABYTE);
});

function drip(_request: unknown, response: ServerResponse): void {
  const timer = setInterval(() => response.write(' '), 20);
  response.once('close', () => clearInterval(timer));
}

test.each<[string, Handle]>([
  ['does not begin', () => undefined],
  ['never ends', (_request, response) => response.write('{"_results":[')],
  ['drips', drip],
])('an answer that %s ends with a timeout', async (_what, answer) => {
  handle = answer;
  const message = 'The service did not answer within 0.2 seconds.';
  expect(await failureOf(get(impatient))).toMatchObject({ kind: 'timeout', unsent: false, message });
});

test.each<[string, object, (response: ServerResponse) => unknown]>([
  ['is cut short', {}, (response) => response.write('{"_error', () => response.destroy())],
  ['never ends', {}, (response) => response.write('{"_error')],
  ['is damaged', { 'content-encoding': 'gzip' }, (response) => response.end('{')],
])('status and headers of a refusal count though its body %s', async (_what, headers, write) => {
  handle = (_request, response) => {
    response.writeHead(429, { 'retry-after': '7', ...headers }).flushHeaders();
    write(response);
  };
  expect(await get(impatient)).toMatchObject({ status: 429, headers: { 'retry-after': '7' } });
});

test('the body of a refusal has a second, however patient the request is', async () => {
  handle = (_request, response) => {
    response.writeHead(429, { 'retry-after': '7' });
    drip(_request, response);
  };
  const patient = new HttpClient({ timeoutMs: 600_000 });
  expect(await get(patient)).toMatchObject({ status: 429, headers: { 'retry-after': '7' } });
  await patient.close();
}, 60_000);

test('a redirect is an answer, and is not followed', async () => {
  handle = (_request, response) => response.writeHead(307, { location: `${origin}/stolen` }).end();
  const before = seen.length;
  expect((await get()).status).toBe(307);
  expect(seen.length).toBe(before + 1);
});

test('a signal ends a request, and prevents the next one', async () => {
  const asked = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  handle = (_request, response) => {
    response.once('close', closed.resolve);
    asked.resolve();
  };
  const stop = new AbortController();
  const answer = failureOf(get(http, stop.signal));
  await asked.promise;
  stop.abort();
  expect((await answer).message).toBe('The app ended the request.');
  await closed.promise;
  const before = seen.length;
  await failureOf(get(http, stop.signal));
  expect(seen.length).toBe(before);
});

function cut(_request: unknown, response: ServerResponse): void {
  response.writeHead(200, { 'content-length': '1000' }).write('{');
  setImmediate(() => response.destroy());
}

test.each<[string, Handle, RegExp]>([
  ['before the answer', (request) => request.socket.destroy(), /UND_ERR_SOCKET/],
  ['by a reset', (request) => request.socket.resetAndDestroy(), /ECONNRESET/],
  ['within the answer', cut, /UND_ERR_SOCKET/],
  ['by bytes that are no HTTP', ({ socket }) => socket.end('HTTP/1.1 200 OK\nsecret: 1\n\n'), /HTTP\/1.1/],
])('a connection that ends %s is unreachable, and leaks nothing', async (_what, answer, reason) => {
  handle = answer;
  const error = await failureOf(get());
  expect(error).toMatchObject({ kind: 'unreachable', remedy: 'wait', unsent: false });
  expect(error.message).toMatch(/^The connection to the service failed/);
  expect(error.message).toMatch(reason);
  expect(error.message).not.toContain('secret');
});

test('a request to a closed port is unsent', async () => {
  const url = new URL(`http://127.0.0.1:${await findFreePort()}/`);
  const error = await failureOf(http.send({ method: 'GET', url }));
  expect(error).toMatchObject({ kind: 'unreachable', unsent: true });
  expect(error.message).toContain('ECONNREFUSED');
});

test('each address of a host has five seconds, not 250 ms', async () => {
  const connect = vi.spyOn(net, 'connect');
  handle = (_request, response) => response.end('{}');
  const client = new HttpClient();
  await get(client);
  expect(connect.mock.calls[0]?.[0]).toMatchObject({ autoSelectFamilyAttemptTimeout: 5_000 });
  connect.mockRestore();
  await client.close();
});

const FAR = { method: 'GET', url: new URL('https://service.invalid/contacts') } as const;

/** A client behind a proxy. Both end with the test. */
async function behindProxy(proxy: net.Server, timeoutMs: number) {
  await once(proxy.listen(0, '127.0.0.1'), 'listening');
  vi.stubEnv('HTTPS_PROXY', `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  vi.stubEnv('NO_PROXY', '');
  const client = new HttpClient({ timeoutMs, usesProxy: true });
  vi.unstubAllEnvs();
  return {
    client,
    async [Symbol.asyncDispose]() {
      await client.close();
      proxy.close();
    },
  };
}

test('the error names a proxy that refuses the connection', async () => {
  const proxy = createServer();
  proxy.on('connect', (_request, socket) => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'));
  await using behind = await behindProxy(proxy, 5_000);
  const message = 'The proxy refused the connection to the service (502).';
  expect(await failureOf(behind.client.send(FAR))).toMatchObject({ remedy: 'wait', unsent: true, message });
});

test('a silent proxy delays neither the next request nor the close', async () => {
  let asked = 0;
  const proxy = createTcpServer((socket) => {
    socket.on('error', () => undefined).once('data', () => asked++);
  });
  await using behind = await behindProxy(proxy, 300);
  for (let request = 1; request <= 2; request++) {
    await expect(behind.client.send(FAR)).rejects.toThrow(/did not answer/);
    expect(asked).toBe(request);
  }
});
