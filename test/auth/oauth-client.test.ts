import { createHash } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it } from 'vitest';
import { OAuthClient, type TokenRefusal, TokenRequestError } from '../../src/auth/oauth-client.ts';
import { ServiceClock } from '../../src/service/headers.ts';
import { startTokenServer } from './token-server.ts';

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);
const SECRET = 's&cret:with/özd=chars';
const GRANT = { access_token: 'at-1', refresh_token: 'rt-1', expires_at: '1772370000', token_type: 'Bearer' };

const server = await startTokenServer();
let clock: ServiceClock;
let oauth: OAuthClient;
beforeEach(() => {
  server.requests.length = 0;
  clock = new ServiceClock(() => NOW);
  oauth = new OAuthClient({
    authUrl: server.url,
    clientId: 'app',
    clientSecret: SECRET,
    redirectUri: 'https://app.example/oauth/callback',
    clock,
  });
});

async function refusalOf(work: Promise<unknown>): Promise<TokenRefusal> {
  const error = await work.then(
    () => expect.unreachable(),
    (thrown: unknown) => thrown,
  );
  if (error instanceof TokenRequestError) return error.refusal;
  throw error;
}

it('starts an authorization with the specified parameters', () => {
  const url = oauth.authorizeUrl('state-1');
  expect(url.origin + url.pathname).toBe(`${server.url}/oauth/authorize`);
  expect(Object.fromEntries(url.searchParams)).toEqual({
    response_type: 'code',
    client_id: 'app',
    redirect_uri: 'https://app.example/oauth/callback',
    state: 'state-1',
  });
});

it('exchanges a code with Basic authentication to the letter', async () => {
  server.answerJson(200, GRANT);
  expect(await oauth.exchange('code-1', 'state-1')).toEqual({
    accessToken: 'at-1',
    refreshToken: 'rt-1',
    grantedAt: NOW,
    accessExpiresAt: 1_772_370_000_000,
  });
  const [request] = server.requests;
  expect(request?.headers.authorization).toBe(`Basic ${Buffer.from(`app:${SECRET}`).toString('base64')}`);
  expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
    grant_type: 'authorization_code',
    code: 'code-1',
    redirect_uri: 'https://app.example/oauth/callback',
  });
});

it('binds a code to its state by PKCE, if the service knows it', async () => {
  const withPkce = new OAuthClient({
    ...{ authUrl: server.url, clientId: 'app', clientSecret: SECRET, clock, pkce: true },
    redirectUri: 'https://app.example/oauth/callback',
  });
  server.answerJson(200, GRANT);
  const verifierOf = async (state: string) => {
    await withPkce.exchange('code-1', state);
    return new URLSearchParams(server.requests.at(-1)?.body).get('code_verifier') ?? '';
  };
  const verifier = await verifierOf('state-1');
  expect(verifier).toMatch(/^[\w-]{43}$/);
  expect(await verifierOf('state-2')).not.toBe(verifier);
  const { searchParams } = withPkce.authorizeUrl('state-1');
  expect(Object.fromEntries(searchParams)).toMatchObject({
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  });
});

it('reads a packed answer', async () => {
  server.answer = (response) => {
    response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' });
    response.end(gzipSync(JSON.stringify(GRANT)));
  };
  expect(await oauth.exchange('code-1', 'state-1')).toMatchObject({ accessToken: 'at-1' });
});

it('refreshes, and knows an answer without a refresh token', async () => {
  server.answerJson(200, { access_token: 'at-2', token_type: 'Bearer' });
  expect(await oauth.refresh('rt-1')).toMatchObject({ accessToken: 'at-2', refreshToken: undefined });
  expect(Object.fromEntries(new URLSearchParams(server.requests[0]?.body))).toEqual({
    grant_type: 'refresh_token',
    refresh_token: 'rt-1',
  });
});

it('learns the time of the service from an answer, before it counts with it', async () => {
  const ahead = NOW + 10 * 60_000;
  server.answerJson(200, { access_token: 'at-2' }, { date: new Date(ahead).toUTCString() });
  const { grantedAt } = await oauth.refresh('rt-1');
  expect(Math.abs(grantedAt - ahead)).toBeLessThan(1_000);
});

it('asks for the time without a token', async () => {
  const behind = NOW - 10 * 60_000;
  server.date = new Date(behind).toUTCString();
  await oauth.askTime();
  expect(Math.abs(clock.now() - behind)).toBeLessThan(1_000);
  expect(server.timeRequests).toMatchObject([{ method: 'HEAD', body: '' }]);
  expect(server.timeRequests[0]?.headers.authorization).toBeUndefined();
});

describe('a grant', () => {
  it.each<[string, number, Record<string, string>, object]>([
    ['of another type', 200, { 'content-type': 'text/html' }, GRANT],
    ['that was created', 201, {}, GRANT],
    ['without token_type', 200, {}, { access_token: 'at-1', refresh_token: 'rt-1' }],
    ['with members that nobody has specified', 200, {}, { ...GRANT, expires_in: 'soon', id_token: 7 }],
  ])('is taken %s', async (_what, status, headers, body) => {
    server.answerJson(status, body, headers);
    expect(await oauth.exchange('code-1', 'state-1')).toMatchObject({
      accessToken: 'at-1',
      refreshToken: 'rt-1',
    });
  });
});

describe('a refusal', () => {
  it.each<[string, number, unknown, Record<string, string>, Partial<TokenRefusal>]>([
    [
      'of RFC 6749',
      400,
      { error: 'invalid_grant', error_description: 'over' },
      {},
      { code: 'invalid_grant', description: 'over' },
    ],
    [
      'in the form of the API',
      403,
      { _error: { message: 'Only admins' } },
      {},
      { code: undefined, description: 'Only admins' },
    ],
    ['that asks to wait', 429, {}, { 'retry-after': '30' }, { status: 429, retryAfterMs: 30_000 }],
    [
      'that states its wait',
      429,
      { _error: { message: 'wait 1500 milliseconds' } },
      {},
      { retryAfterMs: 1_500 },
    ],
    ['with a redirect', 302, {}, { location: 'https://evil.example/' }, { status: 302 }],
    ['that is no JSON', 500, 'x', {}, { status: 500, code: undefined }],
  ])('is told %s', async (_what, status, body, headers, refusal) => {
    server.answerJson(status, body, headers);
    expect(await refusalOf(oauth.refresh('rt-1'))).toMatchObject(refusal);
    expect(server.requests.length).toBe(1);
  });

  it('comes at once when refreshes are broken off', async () => {
    const { asked } = server.holdAnswer();
    const refresh = refusalOf(oauth.refresh('rt-1'));
    await asked;
    oauth.breakOff();
    expect(await refresh).toMatchObject({ status: undefined });
  });
});
