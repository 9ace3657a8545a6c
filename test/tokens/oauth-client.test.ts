import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { inspect } from 'node:util';
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import * as openid from 'openid-client';
import { beforeEach, expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { OAuthClient, type OAuthClientOptions } from '../../src/tokens/oauth-client.ts';
import { toRefreshError } from '../../src/tokens/token-errors.ts';
import { startTokenServer } from './token-server.ts';

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);
const DAY_MS = 24 * 60 * 60_000;
const REDIRECT_URI = 'https://app.example:8443/oauth/callback';
const CLIENT_ID = 'app:1+2%/ ü';
const CLIENT_SECRET = 'p:a+s%s/w o&r=d?ü€';
const GRANTED = {
  access_token: 'at-1',
  refresh_token: 'rt-1',
  expires_at: '1772370000',
  token_type: 'Bearer',
};

const server = await startTokenServer();
let clock: ServiceClock;
let client: OAuthClient;

beforeEach(() => {
  server.requests.length = 0;
  server.answerJson(200, GRANTED, { date: new Date(NOW).toUTCString() });
  clock = new ServiceClock(() => NOW - 3 * 60 * 60_000);
  client = newClient();
});

function newClient(facts: Partial<OAuthClientOptions> = {}) {
  const application = { clientId: CLIENT_ID, clientSecret: CLIENT_SECRET };
  return new OAuthClient({ authUrl: server.url, redirectUri: REDIRECT_URI, clock, ...application, ...facts });
}

/** The last token request: our clock is wrong by hours, so that the time is asked for after it. */
function lastRequest() {
  const request = server.requests.findLast(({ method }) => method === 'POST');
  if (request === undefined) throw new Error('nothing was asked');
  return request;
}

const basic = (text: string) => `Basic ${Buffer.from(text, 'utf8').toString('base64')}`;

test.each([
  ['plain', 'app', 'secret'],
  ['a colon', 'app', 'se:cr:et'],
  ['plus, percent, slash and space', 'app', '+%/ %20'],
  ['an umlaut and a euro', 'äpp', 'gehöim €'],
  ['what a URL would change', '~app!*()', "a&b=c?d#e'f"],
  ['all of it', CLIENT_ID, CLIENT_SECRET],
])(
  'the Basic header is Base64 of client_id:client_secret, to the letter: %s',
  async (_what, clientId, clientSecret) => {
    await newClient({ clientId, clientSecret }).refresh('rt-0');
    expect(lastRequest().headers.authorization).toBe(basic(`${clientId}:${clientSecret}`));
  },
);

test('the library’s own Basic header would be another one', async () => {
  const metadata = { issuer: server.url, token_endpoint: `${server.url}/oauth/token` };
  const own = new openid.Configuration(
    metadata,
    CLIENT_ID,
    undefined,
    openid.ClientSecretBasic(CLIENT_SECRET),
  );
  openid.allowInsecureRequests(own);
  await openid.refreshTokenGrant(own, 'rt-0');
  const { authorization } = lastRequest().headers;
  expect(authorization).toMatch(/^Basic /);
  expect(authorization).not.toBe(basic(`${CLIENT_ID}:${CLIENT_SECRET}`));
});

test('the exchange sends the specified parameters and no others, as a form', async () => {
  expect(await client.exchange('c o+d&e/ü', 'state-1')).toEqual({
    accessToken: 'at-1',
    refreshToken: 'rt-1',
    grantedAt: NOW + 500,
    accessExpiresAt: 1_772_370_000_000,
  });
  const { method, url, headers, body } = lastRequest();
  expect([method, url]).toEqual(['POST', '/auth/oauth/token']);
  expect(headers['content-type']).toMatch(/^application\/x-www-form-urlencoded\b/);
  expect(headers.accept).toBe('application/json');
  expect([...new URLSearchParams(body)].toSorted()).toEqual([
    ['code', 'c o+d&e/ü'],
    ['grant_type', 'authorization_code'],
    ['redirect_uri', REDIRECT_URI],
  ]);
});

test('redirect_uri is identical in both requests', async () => {
  const authorize = client.authorizeUrl('state-1');
  await client.exchange('code-1', 'state-1');
  expect(new URLSearchParams(lastRequest().body).get('redirect_uri')).toBe(
    authorize.searchParams.get('redirect_uri'),
  );
});

test('the authorize address carries the specified parameters and no others', () => {
  const url = client.authorizeUrl('state-1');
  expect(url.origin + url.pathname).toBe(`${server.url}/oauth/authorize`);
  expect(Object.fromEntries(url.searchParams)).toEqual({
    response_type: 'code',
    client_id: CLIENT_ID,
    redirect_uri: REDIRECT_URI,
    state: 'state-1',
  });
});

test('the refresh sends the specified parameters and no others, as a form', async () => {
  expect(await client.refresh('rt/+ 0')).toMatchObject({ accessToken: 'at-1', refreshToken: 'rt-1' });
  const { method, url, headers, body } = lastRequest();
  expect([method, url]).toEqual(['POST', '/auth/oauth/token']);
  expect(headers['content-type']).toMatch(/^application\/x-www-form-urlencoded\b/);
  expect([...new URLSearchParams(body)].toSorted()).toEqual([
    ['grant_type', 'refresh_token'],
    ['refresh_token', 'rt/+ 0'],
  ]);
});

test('a refresh that is answered without a refresh token brings none', async () => {
  server.answerJson(200, { access_token: 'at-2', token_type: 'bearer' });
  expect(await client.refresh('rt-0')).toMatchObject({ accessToken: 'at-2', refreshToken: undefined });
});

test.each([
  ['no token_type', {}],
  ['a refresh_token of null', { token_type: 'Bearer', refresh_token: null }],
  ['an empty refresh_token', { token_type: 'Bearer', refresh_token: '' }],
  ['a refresh_token of false', { token_type: 'Bearer', refresh_token: false }],
  ['a list for the refresh_token', { token_type: 'Bearer', refresh_token: [] }],
  [
    'members that are not specified, in odd forms',
    { token_type: 'bearer', scope: null, expires_in: null, id_token: 'x' },
  ],
])('an answer with %s grants what it says', async (_what, odd) => {
  server.answerJson(200, { access_token: 'at', expires_at: null, ...odd });
  expect(await client.refresh('rt')).toMatchObject({ accessToken: 'at', refreshToken: undefined });
});

test('an exchange that is answered without a refresh token fails', async () => {
  server.answerJson(200, { access_token: 'at-2', token_type: 'Bearer' });
  await expect(client.exchange('code-1', 'state-1')).rejects.toThrow('no refresh token');
});

test('an answer’s Date teaches the clock before expires_at is read with it', async () => {
  const expiresAt = NOW / 1_000 + 1_800;
  server.answerJson(200, { ...GRANTED, expires_at: expiresAt }, { date: new Date(NOW).toUTCString() });
  expect((await client.refresh('rt-0')).accessExpiresAt).toBe(NOW + 30 * 60_000);
  expect(Math.abs(clock.now() - NOW)).toBeLessThan(5_000);
});

const HOUR_MS = 60 * 60_000;
const OWN = NOW - 3 * HOUR_MS;

test.each([
  ['when the next answer says so, too', [400 * DAY_MS, 400 * DAY_MS], NOW + 400 * DAY_MS + 500],
  ['not when the next answer agrees with our clock', [20 * HOUR_MS, -3 * HOUR_MS], OWN],
  ['not when two others say something else', [400 * DAY_MS, 0, 0], NOW + 500],
  ['when only one says something else', [0, 2 * HOUR_MS, 0, 0], NOW + 500],
  ['by nobody when no two agree', [0, HOUR_MS, 2 * HOUR_MS, 4 * HOUR_MS], OWN],
])('a Date that is hard to believe is believed %s', async (_when, ahead, expected) => {
  server.answer = (response) => {
    const isFirst = server.requests.length === 1;
    const date = new Date(NOW + (ahead[server.requests.length - 1] ?? Number.NaN)).toUTCString();
    response.writeHead(isFirst ? 200 : 404, { 'content-type': 'application/json', date });
    response.end(isFirst ? JSON.stringify({ ...GRANTED, expires_at: undefined }) : undefined);
  };
  const { grantedAt, accessExpiresAt } = await client.refresh('rt-0');
  expect(grantedAt).toBe(expected);
  expect(accessExpiresAt).toBe(grantedAt + HOUR_MS);
  expect(server.requests.map(({ method, url }) => [method, url])).toEqual([
    ['POST', '/auth/oauth/token'],
    ...ahead.slice(1).map(() => ['HEAD', '/auth']),
  ]);
  expect(server.requests.at(-1)?.headers.authorization).toBeUndefined();
});

test('a refusal whose Date is hard to believe is followed by the question, too', async () => {
  server.answer = (response) => response.writeHead(403, { date: new Date(NOW).toUTCString() }).end();
  await expect(client.refresh('rt-0')).rejects.toThrow();
  expect(clock.now()).toBe(NOW + 500);
  expect(server.requests.map(({ method }) => method)).toEqual(['POST', 'HEAD']);
});

test.each([
  ['breaks off', (response: ServerResponse) => response.destroy()],
  ['tells no time', (response: ServerResponse) => response.writeHead(404).end()],
])('a Date that is hard to believe is not believed when the question %s', async (_how, answer) => {
  const { answer: grant } = server;
  server.answer = (response) => {
    response.sendDate = false;
    (server.requests.at(-1)?.method === 'HEAD' ? answer : grant)(response);
  };
  expect((await client.refresh('rt-0')).grantedAt).toBe(OWN);
});

test('a refusal with the status of success is one; a grant with an error beside it is a grant', async () => {
  server.answerJson(200, { error: 'invalid_grant', error_description: 'gone' });
  await expect(client.refresh('rt-0')).rejects.toMatchObject({ error: 'invalid_grant', status: 400 });
  server.answerJson(200, { ...GRANTED, error: 'invalid_grant' });
  expect(await client.refresh('rt-0')).toMatchObject({ accessToken: GRANTED.access_token });
});

test.each([201, 202, 203, 226])(
  'a grant that comes with %d is one, to exchange and to refresh',
  async (status) => {
    server.answerJson(status, GRANTED);
    const granted = { accessToken: 'at-1', refreshToken: 'rt-1' };
    expect(await client.refresh('rt-0')).toMatchObject(granted);
    expect(await client.exchange('code-1', 'state-1')).toMatchObject(granted);
  },
);

test('a grant whose status is told in other than plain letters is one', async () => {
  server.answer = (response) => {
    response
      .writeHead(200, 'Accept\xe9', { 'content-type': 'application/json' })
      .end(JSON.stringify(GRANTED));
  };
  expect(await client.refresh('rt-0')).toMatchObject({ accessToken: 'at-1', refreshToken: 'rt-1' });
});

test('a redirect is not followed with the credentials', async () => {
  server.answer = (response) => response.writeHead(307, { location: `${server.url}/stolen` }).end();
  await expect(client.refresh('rt-0')).rejects.toThrow();
  const sent = server.requests.filter(({ headers }) => headers.authorization !== undefined);
  expect(sent.map(({ url }) => url)).toEqual(['/auth/oauth/token']);
});

test('an access token with a space is none; a refresh token with spaces is one, and is sent as it is', async () => {
  server.answerJson(200, { ...GRANTED, access_token: 'a t' });
  await expect(client.refresh('rt-0')).rejects.toThrow('cannot be one');
  server.answerJson(200, { ...GRANTED, refresh_token: ' r t ' });
  expect(await client.exchange('code-1', 'state-1')).toMatchObject({ refreshToken: ' r t ' });
  expect(await client.refresh(' r t ')).toMatchObject({ refreshToken: ' r t ' });
  expect(new URLSearchParams(server.requests.at(-1)?.body).get('refresh_token')).toBe(' r t ');
});

test.each([
  ['the end of a header', 'at\r\nx-evil: 1'],
  ['a NUL', 'at\0'],
  ['half a character', '\ud800'],
  ['an umlaut', 'ät'],
])('a token with %s is none, to exchange and to refresh', async (_what, token) => {
  for (const wrong of [{ access_token: token }, { refresh_token: token }]) {
    server.answerJson(200, { ...GRANTED, ...wrong });
    await expect(client.refresh('rt-0')).rejects.toThrow('cannot be one');
    await expect(client.exchange('code-1', 'state-1')).rejects.toThrow('cannot be one');
  }
});

test('an answer that is far too large is not read to its end', async () => {
  server.answer = (response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    const more = () => {
      while (response.write(' '.repeat(64 * 1_024)));
    };
    response.on('drain', more);
    more();
  };
  await expect(client.refresh('rt-0')).rejects.toThrow();
});

/** Begins an answer, which does not end: its connection breaks, or stays open until the client ends it. */
function sendUnended(
  text: string | Buffer,
  breaks: boolean,
  headers: Record<string, string> = {},
  status = 200,
) {
  const isClosed = Promise.withResolvers<void>();
  server.answer = (response) => {
    response.once('close', isClosed.resolve);
    response.writeHead(status, {
      'content-type': 'application/json',
      date: new Date(NOW).toUTCString(),
      ...headers,
    });
    response.write(text, () => breaks && response.destroy());
  };
  return isClosed.promise;
}

const WHOLE = JSON.stringify(GRANTED);
test('a grant is taken behind headers that are larger than those that clients take', async () => {
  const headers = { date: new Date(NOW).toUTCString(), 'x-of-a-proxy': 'x'.repeat(100_000) };
  server.answerJson(200, GRANTED, headers);
  expect(await client.refresh('rt-0')).toMatchObject({ accessToken: 'at-1', refreshToken: 'rt-1' });
});

const UNENDED = [
  ['breaks before the end of the message', true, {}],
  ['breaks before the length that was told', true, { 'content-length': '5000' }],
  ['stays open until the time is over', false, {}],
] as const;

test.each(UNENDED)(
  'a grant that came whole is taken, to exchange and to refresh, where its connection %s',
  async (_how, breaks, headers) => {
    // No question about the time, which would stay open as well.
    clock = new ServiceClock(() => NOW);
    const unended = newClient({ timeoutSeconds: 2 });
    const isClosed = sendUnended(`${WHOLE}\n`, breaks, headers);
    const granted = await Promise.all([unended.refresh('rt-0'), unended.exchange('code-1', 'state-1')]);
    for (const grant of granted) expect(grant).toMatchObject({ accessToken: 'at-1', refreshToken: 'rt-1' });
    await isClosed;
  },
);

const PACKED = [
  ['gzip', gzipSync(WHOLE)],
  ['X-GZIP', gzipSync(WHOLE)],
  ['deflate', deflateSync(WHOLE)],
  ['deflate', deflateRawSync(WHOLE)],
  ['br', brotliCompressSync(WHOLE)],
  ['zstd', zstdCompressSync(WHOLE)],
  // By the service, and once more by a proxy.
  ['gzip, gzip', gzipSync(gzipSync(WHOLE))],
  ['deflate,, Identity, gzip', gzipSync(deflateSync(WHOLE))],
] as const;

test.each(UNENDED)(
  'so is one that a proxy has packed, though that is not asked for, where its connection %s',
  async (_how, breaks, headers) => {
    clock = new ServiceClock(() => NOW);
    for (const [coding, packed] of PACKED) {
      const isClosed = sendUnended(packed, breaks, { ...headers, 'content-encoding': coding });
      await expect(newClient({ timeoutSeconds: 0.3 }).refresh('rt-0'), coding).resolves.toMatchObject({
        accessToken: 'at-1',
        refreshToken: 'rt-1',
      });
      await isClosed;
      expect(server.requests.at(-1)?.headers['accept-encoding']).toBe('identity');
      void sendUnended(packed.subarray(0, packed.length / 2), breaks, {
        ...headers,
        'content-encoding': coding,
      });
      await expect(newClient({ timeoutSeconds: 0.3 }).refresh('rt-0'), coding).rejects.toThrow();
    }
  },
);

test.each(['gzip', 'br', 'deflate', 'zstd', 'identity, gzip'])(
  'so is one that says that it is packed, and is not: %s',
  async (coding) => {
    server.answer = (response) => response.writeHead(200, { 'content-encoding': coding }).end(WHOLE);
    await expect(client.refresh('rt-0')).resolves.toMatchObject({
      accessToken: 'at-1',
      refreshToken: 'rt-1',
    });
  },
);

test('so is one that a proxy has put something behind', async () => {
  for (const behind of ['\n\n<!-- proxy -->', '\0', ' garbage']) {
    server.answer = (response) => response.end(WHOLE + behind);
    await expect(client.refresh('rt-0'), behind).resolves.toMatchObject({ refreshToken: 'rt-1' });
  }
});

test.each([
  ['a few bytes that unpack to gigabytes', gzipSync(Buffer.alloc(8 * 1_024 * 1_024, ' '))],
  ['what is neither packed as it says nor JSON', Buffer.from(`x${WHOLE}`)],
])('%s: no grant, and the status counts', async (_what, body) => {
  const answerWith = (status: number) => {
    server.answer = (response) =>
      response
        .writeHead(status, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .end(body);
  };
  answerWith(200);
  await expect(client.refresh('rt-0')).rejects.toThrow();
  answerWith(503);
  const refused = await client.refresh('rt-0').catch((error: unknown) => error);
  expect(toRefreshError(refused)).toMatchObject({ remedy: 'wait', status: 503 });
});

test('a refresh is broken off, and is over in time, also while its connection comes about', async () => {
  const silent = createServer((socket) => socket.on('error', () => {})).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const authUrl = `https://127.0.0.1:${(silent.address() as AddressInfo).port}/auth`;
  const connectionFailed = Promise.withResolvers<string>();
  const tell = () => connectionFailed.resolve('its connection has failed before');
  subscribe('undici:client:connectError', tell);
  for (const timeoutSeconds of [0.3, 30]) {
    const connecting = newClient({ authUrl, timeoutSeconds });
    const connected = once(silent, 'connection');
    const refusal = connecting.refresh('rt-0').catch((error: unknown) => error);
    await connected;
    if (timeoutSeconds === 30) connecting.breakOff();
    expect(await Promise.race([refusal, connectionFailed.promise])).toBeInstanceOf(Error);
  }
  unsubscribe('undici:client:connectError', tell);
  silent.close();
});

test('what is said of an answer that is no JSON quotes nothing of it', async () => {
  for (const text of ['{"access_token":"at-secret" "', '"at-secret"', 'at-secret']) {
    server.answer = (response) => response.writeHead(200, { 'content-type': 'application/json' }).end(text);
    const error = await client.refresh('rt-0').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(inspect(error, { depth: 10 })).not.toContain('secret');
  }
});

test('a status that nobody knows is trouble of the service', async () => {
  server.answerJson(750, {});
  const error = await client.refresh('rt-0').catch((thrown: unknown) => thrown);
  expect(toRefreshError(error)).toMatchObject({ remedy: 'wait', status: 599 });
});

test.each(UNENDED)(
  'one that did not come whole is none, where its connection %s',
  async (_how, breaks, headers) => {
    for (const text of [
      '',
      WHOLE.slice(0, -1),
      `{"answer":${WHOLE}`,
      '{"token_type":"Bearer"}',
      `[${WHOLE}]`,
    ]) {
      void sendUnended(text, breaks, headers);
      await expect(newClient({ timeoutSeconds: 0.3 }).refresh('rt-0')).rejects.toThrow();
    }
    void sendUnended(WHOLE, breaks, headers, 500);
    await expect(newClient({ timeoutSeconds: 0.3 }).refresh('rt-0')).rejects.toThrow();
  },
);
