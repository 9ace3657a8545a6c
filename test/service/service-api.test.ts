import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { RateBudget } from '../../src/service/budget.ts';
import { ServiceClock } from '../../src/service/headers.ts';
import { HttpClient } from '../../src/service/http.ts';
import { AllowedOrigins } from '../../src/service/next-url.ts';
import { ServiceApi } from '../../src/service/service-api.ts';
import { startTestRedis } from '../support/test-redis.ts';

let answer: (response: ServerResponse) => void;
const server = createServer((_request, response) => answer(response)).listen(0, '127.0.0.1');
await once(server, 'listening');
const redis = new Redis((await startTestRedis()).url);
const http = new HttpClient();
afterAll(async () => {
  redis.disconnect();
  await http.close();
  server.close();
});
const apiUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
const outcomes: object[] = [];
const api = new ServiceApi({
  apiUrl,
  http,
  budget: new RateBudget(redis),
  clock: new ServiceClock(),
  origins: new AllowedOrigins(apiUrl),
  onOutcome: ({ route, status, refusedBy }) => outcomes.push({ route, status, refusedBy }),
});

function identityOf(status: number, body: string) {
  answer = (response) => response.writeHead(status).end(body);
  return api.identity('token');
}

const KEYS = '\u{1f511}'.repeat(5_000);

test.each<[string, object]>([
  ['{"id":"cmp_1","name":"  Åkesson "}', { id: 'cmp_1', name: 'Åkesson' }],
  ['{"id":17.0,"name":" "}', { id: '17', name: undefined }],
  ['{"id":1,"id":12345678901234567890}', { id: '12345678901234567890', name: undefined }],
  ['{"of":{"id":1},"id":-90071992547409931,"name":7}', { id: '-90071992547409931', name: undefined }],
  [`{"id":"cmp_1","name":"x${KEYS}"}`, { id: 'cmp_1', name: `x${KEYS}`.slice(0, 200).toWellFormed() }],
])('the answer %.60s names the company', async (body, identity) => {
  expect(await identityOf(200, body)).toEqual(identity);
});

test.each([
  [200, '{}'],
  [200, '{"id":null,"name":"Acme"}'],
  [403, ''],
  [404, '<h1>'],
])('the answer %d %s names no company', async (status, body) => {
  expect(await identityOf(status, body)).toBeUndefined();
});

test.each<[number, string, string]>([
  [200, '{"id":""}', 'neither a text nor an integer'],
  [200, '{"id":1.5}', 'neither a text nor an integer'],
  [200, '{"id":1e30}', 'neither a text nor an integer'],
  [200, '{"id":{"id":"cmp_1"}}', 'neither a text nor an integer'],
  [200, String.raw`{"id":"cmp_\ud800"}`, 'no Unicode text'],
  [200, '{"id":"caf\ufffd"}', 'no Unicode text'],
  [200, `{"id":"${'i'.repeat(1_001)}"}`, 'longer than 1000 characters'],
  [200, 'null', 'it is no object'],
  [200, '[]', 'it is no object'],
  [200, '{"id":"cmp_1"', 'it is not JSON'],
  [200, '', 'it is empty'],
  [401, '', '401'],
  [302, '', 'redirect'],
  [500, '', '500'],
])('the answer %d %.40s is an error, not an unnamed company', async (status, body, why) => {
  await expect(identityOf(status, body)).rejects.toMatchObject({
    name: 'ServiceError',
    remedy: 'wait',
    message: expect.stringContaining(why),
  });
});

test('every answer is reported with its status, and what refused it', async () => {
  outcomes.length = 0;
  await identityOf(200, '{"id":"cmp_1"}');
  await identityOf(429, '').catch(() => undefined);
  answer = (response) => response.writeHead(429, { 'x-service-tier': 'search' }).end();
  await api.identity('token').catch(() => undefined);
  answer = (response) => response.destroy();
  await api.identity('token').catch(() => undefined);
  expect(outcomes).toEqual([
    { route: '/me', status: 200 },
    { route: '/me', status: 429, refusedBy: 'limit' },
    { route: '/me', status: 429, refusedBy: 'guard' },
    { route: '/me', status: 0 },
  ]);
});
