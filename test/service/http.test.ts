import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { ServiceError } from '../../src/service/errors.ts';
import { HttpClient } from '../../src/service/http.ts';
import { refusalOf } from '../../src/service/refusal.ts';
import { findFreePort } from '../support/free-port.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

const MEGABYTE = 1024 * 1024;

const seen: IncomingMessage[] = [];
let handle: (request: IncomingMessage, response: ServerResponse) => void = () => {};
let server: Server;
let origin: string;
const http = new HttpClient();
const impatient = new HttpClient(100);
/** For what has to succeed before something else fails. */
const brisk = new HttpClient(700);
const patient = new HttpClient(10 * PATIENCE_MS);

beforeAll(async () => {
  server = createServer((request, response) => {
    seen.push(request);
    handle(request, response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterAll(async () => {
  await Promise.all([http, impatient, brisk, patient].map((client) => client.close()));
  server.closeAllConnections();
  server.close();
});

async function failure(answer: Promise<unknown>): Promise<ServiceError> {
  const error = await answer.then(
    () => new Error('there was an answer'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof ServiceError)) throw error;
  return error;
}

test('an answer is read to its end, whatever its status', async () => {
  handle = (_request, response) => {
    response.writeHead(418, { 'content-type': 'application/json', 'X-Mixed-Case': 'kept' });
    response.write(Buffer.from('{"name":"Zo').subarray(0, 11));
    response.end('ë"}');
  };
  const answer = await http.send({
    method: 'GET',
    url: new URL(`${origin}/contacts?limit=100`),
    headers: { authorization: 'Bearer secret' },
  });
  expect(answer.status).toBe(418);
  expect(answer.body).toBe('{"name":"Zoë"}');
  expect(answer.headers['x-mixed-case']).toBe('kept');
  expect(seen.at(-1)).toMatchObject({ method: 'GET', url: '/contacts?limit=100' });
  expect(seen.at(-1)?.headers).toMatchObject({
    authorization: 'Bearer secret',
    accept: 'application/json',
    'user-agent': 'partner-app',
  });
});

test('what comes before an answer (102, 103) is none, whatever its headers say', async () => {
  handle = (_request, response) => {
    response.writeProcessing();
    const link = '</contacts>; rel=preload; as=fetch';
    response.writeEarlyHints({ link, 'content-encoding': 'gzip', 'retry-after': '9' }, () =>
      response.end('{"ok":1}'),
    );
  };
  const answer = await http.send({ method: 'GET', url: new URL(origin) });
  expect([answer.status, answer.body]).toEqual([200, '{"ok":1}']);
  expect(answer.headers).not.toHaveProperty('retry-after');
});

test('a character that is split between two chunks comes whole', async () => {
  handle = (_request, response) => {
    const bytes = Buffer.from('€'.repeat(50_000));
    response.write(bytes.subarray(0, 100_000));
    setImmediate(() => response.end(bytes.subarray(100_000)));
  };
  expect((await http.send({ method: 'GET', url: new URL(origin) })).body).toBe('€'.repeat(50_000));
});

test.each([
  ['one piece', '\ufeff{"ok":1}'],
  ['two', '\ufeff', '{"ok":1}'],
])('a byte order mark is no part of the answer, in %s', async (_what, ...pieces) => {
  handle = (_request, response) => {
    for (const piece of pieces) response.write(piece);
    response.end();
  };
  expect((await http.send({ method: 'GET', url: new URL(origin) })).body).toBe('{"ok":1}');
});

test('of a header that comes several times the first counts', async () => {
  handle = (_request, response) => {
    response.setHeader('x-ratelimit-remaining', ['5', '9']).end('{}');
  };
  expect((await http.send({ method: 'GET', url: new URL(origin) })).headers['x-ratelimit-remaining']).toBe(
    '5',
  );
});

test.each(['POST', 'PUT', 'PATCH', 'DELETE'] as const)(
  'a %s takes its body along, as JSON',
  async (method) => {
    const got = Promise.withResolvers<string>();
    handle = async (request, response) => {
      let text = '';
      for await (const chunk of request.setEncoding('utf8')) text += chunk;
      got.resolve(text);
      response.writeHead(201).end('{}');
    };
    const answer = await http.send({ method, url: new URL(`${origin}/tags`), body: '{"name":"Zoë"}' });
    expect(answer.status).toBe(201);
    expect(await got.promise).toBe('{"name":"Zoë"}');
    expect(seen.at(-1)?.method).toBe(method);
    expect(seen.at(-1)?.headers['content-type']).toBe('application/json');
  },
);

test('without a body none is announced', async () => {
  handle = (_request, response) => {
    response.end('{}');
  };
  await http.send({ method: 'POST', url: new URL(origin), headers: { prefer: 'respond-async' } });
  expect(seen.at(-1)?.headers).not.toHaveProperty('content-type');
  expect(seen.at(-1)?.headers).toMatchObject({ 'content-length': '0', prefer: 'respond-async' });
});

test('a redirect is an answer, and nothing is sent to where it leads', async () => {
  handle = (_request, response) => {
    response.writeHead(307, { location: `${origin}/stolen` }).end();
  };
  const before = seen.length;
  const answer = await http.send({
    method: 'GET',
    url: new URL(`${origin}/redirects`),
    headers: { authorization: 'Bearer secret' },
  });
  expect(answer.status).toBe(307);
  expect(seen.slice(before).map(({ url }) => url)).toEqual(['/redirects']);
});

test('a service that does not begin to answer is given up on in time', async () => {
  handle = () => {};
  const error = await failure(impatient.send({ method: 'GET', url: new URL(origin) }));
  expect(error).toMatchObject({ remedy: 'wait', status: undefined });
  expect(error.message).toContain('0.1 seconds');
});

test('a service that begins and never ends is given up on in time', async () => {
  handle = (_request, response) => {
    response.write('{"_results":[');
    const drip = setInterval(() => response.write(' '), 20);
    response.once('close', () => clearInterval(drip));
  };
  const error = await failure(impatient.send({ method: 'GET', url: new URL(origin) }));
  expect(error.remedy).toBe('wait');
  expect(error.message).toContain('did not answer within');
});

test('a connection that is half open by now is given up on in time, and the next request gets another one', async () => {
  const proxy = await startTcpProxy(Number(new URL(origin).port));
  const url = new URL(`http://127.0.0.1:${proxy.port}/contacts`);
  handle = (_request, response) => {
    response.end('{}');
  };
  await brisk.send({ method: 'GET', url });
  expect(proxy.open).toBe(1);
  proxy.silence();
  const error = await failure(brisk.send({ method: 'GET', url }));
  expect(error).toMatchObject({ remedy: 'wait', unsent: false });
  expect(error.message).toContain('did not answer within');
  await proxy.pass();
  expect((await brisk.send({ method: 'GET', url })).status).toBe(200);
});

test('a service that drips is waited for no longer than for any answer', async () => {
  const proxy = await startTcpProxy(Number(new URL(origin).port));
  const url = new URL(`http://127.0.0.1:${proxy.port}/contacts`);
  handle = (_request, response) => {
    response.end(JSON.stringify({ _results: Array(100).fill({ id: 'crd_1' }) }));
  };
  proxy.slow(1, 5);
  const error = await failure(brisk.send({ method: 'GET', url }));
  expect(error.message).toContain('did not answer within');
  await proxy.pass();
  expect((await brisk.send({ method: 'GET', url })).body).toContain('crd_1');
});

test('whoever asked can end the request early', async () => {
  const asked = Promise.withResolvers<void>();
  const closed = Promise.withResolvers<void>();
  handle = (_request, response) => {
    response.once('close', closed.resolve);
    asked.resolve();
  };
  const stop = new AbortController();
  const answer = failure(http.send({ method: 'GET', url: new URL(origin) }, stop.signal));
  await asked.promise;
  stop.abort();
  const error = await answer;
  expect(error.remedy).toBe('wait');
  expect(error.message).not.toContain('did not answer');
  await closed.promise;
});

test('whoever has given up before asks nothing', async () => {
  const before = seen.length;
  const error = await failure(http.send({ method: 'GET', url: new URL(origin) }, AbortSignal.abort()));
  expect(error).toMatchObject({ remedy: 'wait', unsent: true });
  expect(seen.length).toBe(before);
});

test('a request that waits for its connection can be ended, too, and is not sent then', async () => {
  const before = seen.length;
  const stop = new AbortController();
  const answer = failure(http.send({ method: 'GET', url: new URL(`${origin}/late`) }, stop.signal));
  stop.abort();
  expect(await answer).toMatchObject({ remedy: 'wait' });
  handle = (_request, response) => {
    response.end('{}');
  };
  await http.send({ method: 'GET', url: new URL(`${origin}/after`) });
  expect(seen.slice(before).map(({ url }) => url)).toEqual(['/after']);
});

test('a body that is too large is not read to its end', async () => {
  const closed = Promise.withResolvers<void>();
  let written = 0;
  handle = (_request, response) => {
    response.once('close', closed.resolve);
    const chunk = Buffer.alloc(MEGABYTE, ' ');
    const pour = () => {
      while (!response.destroyed && written < 200 * MEGABYTE) {
        written += chunk.length;
        if (!response.write(chunk)) return;
      }
      response.end();
    };
    response.on('drain', pour);
    pour();
  };
  const error = await failure(http.send({ method: 'GET', url: new URL(origin) }));
  expect(error.remedy).toBe('wait');
  expect(error.message).toContain('larger than');
  await closed.promise;
  expect(written).toBeLessThan(100 * MEGABYTE);
});

test('a body that says beforehand that it is too large is not read at all', async () => {
  const closed = Promise.withResolvers<void>();
  handle = (_request, response) => {
    response.once('close', closed.resolve);
    response.writeHead(200, { 'content-length': 50 * MEGABYTE });
    response.write('{"_results":[');
  };
  const error = await failure(http.send({ method: 'GET', url: new URL(origin) }));
  expect(error.remedy).toBe('wait');
  expect(error.message).toContain('larger than 32 megabytes');
  await closed.promise;
});

test('a body that is packed is not asked for, and not unpacked', async () => {
  const bomb = gzipSync(Buffer.alloc(100 * MEGABYTE, ' '));
  const closed = Promise.withResolvers<void>();
  handle = (request, response) => {
    expect(request.headers['accept-encoding']).toBe('identity');
    response.once('close', closed.resolve);
    response.writeHead(200, { 'content-encoding': 'gzip', 'content-type': 'application/json' }).end(bomb);
  };
  const before = process.memoryUsage().rss;
  const error = await failure(http.send({ method: 'GET', url: new URL(origin) }));
  expect(error.remedy).toBe('wait');
  expect(error.message).toBe('The service packed its answer (gzip), which it was asked not to do.');
  await closed.promise;
  expect(process.memoryUsage().rss - before).toBeLessThan(50 * MEGABYTE);
});

test.each(['Identity', ' IDENTITY ', ''])('a body that is called %j is not packed', async (coding) => {
  handle = (_request, response) => response.writeHead(200, { 'content-encoding': coding }).end('{"id":1}');
  expect((await http.send({ method: 'GET', url: new URL(origin) })).body).toBe('{"id":1}');
});

test.each([
  ['is cut short', (response: ServerResponse) => response.write('{"_error', () => response.destroy())],
  ['never ends', (response: ServerResponse) => response.write('{"_error')],
  ['is endless', (response: ServerResponse) => response.write(Buffer.alloc(MEGABYTE, ' '))],
  ['is packed', (response: ServerResponse) => response.end(gzipSync('{"_error":{}}'))],
])('a refusal whose body %s is still one, and its headers count', async (what, write) => {
  handle = (_request, response) => {
    const headers = { 'retry-after': '7', ...(what === 'is packed' ? { 'content-encoding': 'gzip' } : {}) };
    response.writeHead(429, headers).flushHeaders();
    write(response);
  };
  const answer = await brisk.send({ method: 'GET', url: new URL(origin) });
  expect(answer.status).toBe(429);
  expect(answer.headers['retry-after']).toBe('7');
  expect(answer.body.length).toBeLessThan(100_000);
});

test(
  'a refusal is known long before the time of its request is over, though its body does not end',
  async () => {
    handle = (_request, response) => response.writeHead(429, { 'retry-after': '7' }).write('{"_error');
    const answer = await patient.send({ method: 'GET', url: new URL(origin) });
    expect(answer).toMatchObject({ status: 429, headers: { 'retry-after': '7' }, body: '{"_error' });
  },
  PATIENCE_MS,
);

test.each([
  ['breaks off before the answer', (response: ServerResponse) => response.destroy()],
  [
    'breaks off within the answer',
    (response: ServerResponse) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('{"_results"');
      setImmediate(() => response.destroy());
    },
  ],
])('a connection that %s is trouble that may pass', async (_what, breakOff) => {
  handle = (_request, response) => breakOff(response);
  const error = await failure(
    http.send({ method: 'GET', url: new URL(origin), headers: { authorization: 'Bearer secret' } }),
  );
  expect(error).toMatchObject({ remedy: 'wait', unsent: false });
  expect(error.message).toMatch(/^The connection to the service failed/);
  expect(error.message).not.toContain('secret');
});

test('a request that came whole before its connection was reset may have been carried out: it is not called unsent', async () => {
  const body = '{"name":"once"}';
  const came = Promise.withResolvers<string>();
  handle = async (request) => {
    came.resolve(await text(request));
    request.socket.resetAndDestroy();
  };
  const error = await failure(http.send({ method: 'POST', url: new URL(origin), body }));
  expect(await came.promise).toBe(body);
  expect(error).toMatchObject({ remedy: 'wait', unsent: false });
  expect(error.message).toContain('ECONNRESET');
});

test('an answer that is no HTTP is trouble that may pass, and says what is wrong with it', async () => {
  handle = (request) => request.socket.end('HTTP/1.1 200 OK\nsecret: 1\n\n');
  const error = await failure(http.send({ method: 'GET', url: new URL(origin) }));
  expect(error).toMatchObject({ remedy: 'wait', unsent: false });
  expect(error.message).toContain('does not match the HTTP/1.1 protocol');
  expect(error.message).not.toContain('secret');
});

test('a service that is not there is trouble that may pass, says why, and has got nothing', async () => {
  const error = await failure(
    http.send({ method: 'GET', url: new URL(`http://127.0.0.1:${await findFreePort()}/`) }),
  );
  expect(error).toMatchObject({ remedy: 'wait', unsent: true });
  expect(error.message).toContain('ECONNREFUSED');
});

test.each([
  ['', false, 'The request was not sent: its time was over before there was a connection.'],
  [', and that was ended before', true, 'The request was broken off.'],
])(
  'a request whose time is over before it has a connection, as the event loop stood still%s, is not sent',
  async (_what, isEnded, message) => {
    handle = (_request, response) => response.end('{}');
    const before = seen.length;
    // Told of a connection before the request is written to it, and before any timer can ring.
    const connected = 'undici:client:connected';
    const standStill = () => {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 150);
    };
    const client = new HttpClient(100);
    subscribe(connected, standStill);
    const stop = new AbortController();
    const sending = failure(client.send({ method: 'POST', url: new URL(origin), body: '{}' }, stop.signal));
    if (isEnded) stop.abort();
    const error = await sending;
    expect(error).toMatchObject({ remedy: 'wait', unsent: !isEnded });
    expect(error.message).toBe(message);
    // The next one goes as ever; had the first one gone, it would have come before.
    await http.send({ method: 'GET', url: new URL(origin) });
    await client.close();
    unsubscribe(connected, standStill);
    expect(seen.slice(before).map(({ method }) => method)).toEqual(['GET']);
  },
);

test('a request whose connection comes later than it may is not sent, and the connection is kept for the next', async () => {
  handle = (_request, response) => response.end('{}');
  const before = seen.length;
  let connections = 0;
  const count = () => connections++;
  server.on('connection', count);
  const connected = 'undici:client:connected';
  const standStill = () => {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60);
  };
  const client = new HttpClient();
  const url = new URL(origin);
  subscribe(connected, standStill);
  const sending = client.send({ method: 'POST', url, body: '{}', connectedBy: performance.now() + 50 });
  expect(await failure(sending)).toMatchObject({ remedy: 'wait', unsent: true, permitOver: true });
  unsubscribe(connected, standStill);
  await client.send({ method: 'GET', url, connectedBy: performance.now() + 50 });
  await client.close();
  server.off('connection', count);
  expect(seen.slice(before).map(({ method }) => method)).toEqual(['GET']);
  expect(connections).toBe(1);
});

test('of a header that comes twice the first counts, but of retry-after the longer', async () => {
  handle = (_request, response) => {
    response.setHeader('retry-after', ['1', '58']);
    response.setHeader('ratelimit-limit', ['100', '200']);
    response.writeHead(503).end();
  };
  const answer = await http.send({ method: 'GET', url: new URL(origin) });
  expect(answer.headers['ratelimit-limit']).toBe('100');
  expect(refusalOf(answer, Date.now())?.retryAfterMs).toBe(58_000);
});

test('a proxy that refuses the way to the service is told as that, with its status, and nothing has been sent', async () => {
  const proxy = createServer().listen(0, '127.0.0.1');
  proxy.on('connect', (_request, socket) => socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n'));
  await once(proxy, 'listening');
  vi.stubEnv('HTTPS_PROXY', `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`);
  vi.stubEnv('NO_PROXY', '');
  const client = new HttpClient(undefined, undefined, { usesProxy: true, checksCertificates: true });
  vi.unstubAllEnvs();
  const error = await failure(client.send({ method: 'GET', url: new URL('https://127.0.0.1:1/contacts') }));
  expect(error).toMatchObject({ remedy: 'wait', unsent: true });
  expect(error.message).toBe('The proxy that leads to the service does not let the app through (502).');
  await client.close();
  proxy.close();
});
