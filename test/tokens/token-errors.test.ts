import type { ServerResponse } from 'node:http';
import { expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { OAuthClient } from '../../src/tokens/oauth-client.ts';
import { oauthErrorOf, toRefreshError } from '../../src/tokens/token-errors.ts';
import { findFreePort } from '../support/free-port.ts';
import { startTokenServer } from './token-server.ts';

const server = await startTokenServer();

function newClient(authUrl: string) {
  return new OAuthClient({
    authUrl,
    clientId: 'app',
    clientSecret: 'top-secret',
    redirectUri: 'https://app.example/oauth/callback',
    clock: new ServiceClock(),
  });
}

/** What a refresh fails on when the token route answers so. */
async function failure(authUrl = server.url): Promise<unknown> {
  return newClient(authUrl)
    .refresh('rt-secret')
    .then(
      () => expect.unreachable('the refresh went well'),
      (error: unknown) => error,
    );
}

function json(status: number, body: unknown, headers: Record<string, string> = {}) {
  return (response: ServerResponse) => {
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
  };
}

const CHALLENGE = { 'www-authenticate': 'Basic realm="token", charset="UTF-8"' };
/** The status of a limit would be taken for that of the company's requests. */
const OF_NO_LIMIT = { remedy: 'wait', status: undefined };
const SERVICE_ERROR = { _error: { status: 500, title: 'Oops', message: 'Something went wrong' } };

test.each<[string, (response: ServerResponse) => void, object]>([
  ['invalid_grant', json(400, { error: 'invalid_grant' }), { remedy: 'reauthorize' }],
  ['invalid_client', json(401, { error: 'invalid_client' }), { remedy: 'give_up' }],
  [
    'invalid_client with a challenge',
    json(401, { error: 'invalid_client' }, CHALLENGE),
    { remedy: 'give_up' },
  ],
  [
    // As likely an answer to a refresh token that is over, by whoever challenges at each 401.
    'a bare 401 with a challenge',
    (response) => response.writeHead(401, CHALLENGE).end(),
    { remedy: 'wait', status: 401, message: "The service refuses to renew the app's access (401)." },
  ],
  [
    'challenges, of which one is for the credentials',
    (response) =>
      response.writeHead(401, { 'www-authenticate': ['Bearer realm="api"', 'BASIC realm="token"'] }).end(),
    { remedy: 'wait', status: 401 },
  ],
  [
    'a challenge for a token that was revoked',
    json(401, SERVICE_ERROR, {
      'www-authenticate': 'Bearer error="invalid_token", error_description="Basic"',
    }),
    { remedy: 'wait', status: 401, message: "The service refuses to renew the app's access (401)." },
  ],
  [
    'a bare 401 with a challenge of another scheme',
    (response) => response.writeHead(401, { 'www-authenticate': 'Bearer error=invalid_grant, DPoP' }).end(),
    { remedy: 'wait', status: 401 },
  ],
  ['unauthorized_client', json(400, { error: 'unauthorized_client' }), { remedy: 'give_up' }],
  [
    'the service’s own words, and a challenge',
    json(401, SERVICE_ERROR, CHALLENGE),
    { remedy: 'wait', status: 401 },
  ],
  ['the service’s own words', json(400, SERVICE_ERROR), { remedy: 'wait', status: 400 }],
  [
    'a framework’s own words, and a challenge',
    json(401, { error: 'Unauthorized' }, CHALLENGE),
    { remedy: 'wait', status: 401 },
  ],
  ['another OAuth error', json(400, { error: 'temporarily_unavailable' }), { remedy: 'wait' }],
  ['500', json(500, SERVICE_ERROR), { remedy: 'wait', status: 500, retryAfterMs: undefined }],
  ['500 without a body', (response) => response.writeHead(500).end(), { remedy: 'wait', status: 500 }],
  [
    '503 with retry-after',
    json(503, SERVICE_ERROR, { 'retry-after': '7' }),
    { remedy: 'wait', status: 503, retryAfterMs: 7_000 },
  ],
  [
    '429 with retry-after',
    json(429, SERVICE_ERROR, { 'retry-after': '2.5' }),
    { ...OF_NO_LIMIT, message: /trouble \(429\)/, retryAfterMs: 2_500 },
  ],
  [
    '429 with retry-after and an error of its own',
    json(429, { error: 'slow_down' }, { 'retry-after': '3' }),
    { ...OF_NO_LIMIT, retryAfterMs: 3_000 },
  ],
  [
    '429 whose message alone says how long to wait',
    json(429, { _error: { status: 429, title: 'Slow down', message: 'Retry in 60000 milliseconds.' } }),
    { ...OF_NO_LIMIT, retryAfterMs: 60_000 },
  ],
  [
    '429 with retry-after as a date, by a service whose clock is another',
    json(429, SERVICE_ERROR, {
      date: 'Sat, 01 Mar 2031 12:00:00 GMT',
      'retry-after': 'Sat, 01 Mar 2031 12:00:09 GMT',
    }),
    { ...OF_NO_LIMIT, retryAfterMs: 9_000 },
  ],
  [
    'HTML',
    (response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>hi</h1>'),
    { remedy: 'wait', status: 200 },
  ],
  [
    'HTML as JSON',
    (response) => response.writeHead(200, { 'content-type': 'application/json' }).end('<h1>'),
    { remedy: 'wait' },
  ],
  ['no access token', json(200, { token_type: 'Bearer' }), { remedy: 'wait' }],
  [
    'a redirect',
    (response) => response.writeHead(302, { location: '/elsewhere' }).end(),
    { remedy: 'wait', status: 302 },
  ],
  ['a connection that breaks', (response) => response.destroy(), { remedy: 'wait', status: undefined }],
])('a refresh answered with %s', async (_what, answer, expected) => {
  server.answer = answer;
  const cause = await failure();
  const error = toRefreshError(cause);
  expect(error).toMatchObject(expected);
  expect(error.cause).toBe(cause);
  expect(error.message).not.toMatch(/secret/);
});

test.each([
  'text/plain',
  'text/json',
  'text/html; charset=utf-8',
  'application/problem+json',
  'application/json ; charset=utf-8',
  '',
])('a grant that is over is told by the body of the answer, called %j', async (type) => {
  for (const [status, headers] of [
    [400, {}],
    [401, CHALLENGE],
    [403, {}],
  ] as const) {
    server.answer = (response) => {
      response.writeHead(status, { ...headers, ...(type && { 'content-type': type }) });
      response.end('{"error":"invalid_grant"}');
    };
    expect(toRefreshError(await failure()).remedy).toBe('reauthorize');
  }
});

test('a token route that is not there', async () => {
  const error = toRefreshError(await failure(`http://127.0.0.1:${await findFreePort()}`));
  expect(error).toMatchObject({ remedy: 'wait', status: undefined });
});

test('a token route that takes too long, or anything else', () => {
  expect(toRefreshError(new DOMException('timed out', 'TimeoutError'))).toMatchObject({ remedy: 'wait' });
  expect(toRefreshError('nonsense')).toMatchObject({ remedy: 'wait', status: undefined });
});

test('the names of OAuth errors, where the token route spoke OAuth', async () => {
  server.answer = json(400, { error: 'invalid_grant', error_description: 'expired' });
  expect(oauthErrorOf(await failure())).toEqual({ code: 'invalid_grant', description: 'expired' });
  server.answer = (response) => response.writeHead(401, CHALLENGE).end();
  expect(oauthErrorOf(await failure())).toMatchObject({ code: 'invalid_client' });
  server.answer = json(500, SERVICE_ERROR);
  expect(oauthErrorOf(await failure())).toBeUndefined();
});
