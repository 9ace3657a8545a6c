import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { gzipSync } from 'node:zlib';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { exchangeFailure } from '../../src/install/install-failures.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { OAuthClient } from '../../src/tokens/oauth-client.ts';
import type { HttpSession } from '../support/http-session.ts';
import { consent, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import type { SandboxCompany } from '../support/sandbox-control.ts';
import { startTestApp } from '../support/test-app.ts';
import { startTokenServer } from '../tokens/token-server.ts';

// The whole app, whose token route is this server: it passes requests on to the sandbox until a test says otherwise.
const tokenServer = await startTokenServer();
const testApp = await startTestApp({ env: { SERVICE_AUTH_URL: tokenServer.url } });
const { control, sandbox, config } = testApp;
const database = await openDatabase(config.databaseUrl);
const redis = new Redis(testApp.redisUrl);
const company = await control.addCompany({ name: 'Acme', plan: 'starter', contacts: 20, conversations: 20 });

// Another place, where neither the secret nor the code may ever arrive.
const arrivals: string[] = [];
const elsewhere = createServer((request, response) => {
  arrivals.push(`${request.method} ${request.url}`);
  response.end('{"access_token":"at","refresh_token":"rt","token_type":"Bearer"}');
}).listen(0, '127.0.0.1');
await once(elsewhere, 'listening');
const elsewhereUrl = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/stolen`;

afterAll(async () => {
  elsewhere.close();
  await database.destroy();
  redis.disconnect();
});

/** What the sandbox grants for the last request: tokens that would work. */
async function grant(): Promise<Record<string, unknown>> {
  const { headers, body } = tokenServer.requests.at(-1) ?? { headers: {}, body: '' };
  const answer = await fetch(`${sandbox.authUrl}/oauth/token`, {
    method: 'POST',
    headers: {
      authorization: headers.authorization ?? '',
      'content-type': headers['content-type'] ?? '',
    },
    body,
  });
  return (await answer.json()) as Record<string, unknown>;
}

/** Answers a token request; `good` is what would be right. */
type Answer = (response: ServerResponse, good: Record<string, unknown>) => void;

/** From now on the token route answers like this. */
function answerWith(answer: Answer): void {
  tokenServer.answer = (response) => void grant().then((good) => answer(response, good));
}

beforeEach(async () => {
  // This file has one address, and fails more often than an address may.
  await redis.del('none', ...(await redis.keys('limit:*')));
  arrivals.length = 0;
  tokenServer.requests.length = 0;
  answerWith(answers(200, (good) => good));
});

/** Installs as a person does, up to the page behind the callback; the consent is the sandbox's. */
async function comeBack(browser: HttpSession, whose: SandboxCompany) {
  const started = await browser.get('/install', { follow: false });
  const consentPage = new URL(started.location?.href.replace(tokenServer.url, sandbox.authUrl) ?? '');
  return consent(browser, await browser.get(consentPage), whose);
}

/** Everything that an install writes. */
async function stored() {
  return {
    instances: await database.selectFrom('instances').selectAll().orderBy('id').execute(),
    tokens: await database.selectFrom('tokens').selectAll().orderBy('instance_id').execute(),
  };
}

function answers(
  status: number,
  body: (good: Record<string, unknown>) => unknown,
  headers: Record<string, string> = {},
): Answer {
  return (response, good) => {
    const content = body(good);
    const text = typeof content === 'string' ? content : JSON.stringify(content);
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
  };
}

const html = () => '<!doctype html><script>alert(1)</script>';
const right = (good: Record<string, unknown>) => good;
/** Right but for some members. */
const but = (wrong: Record<string, unknown>) => (good: Record<string, unknown>) => ({ ...good, ...wrong });
const SPACES = ' '.repeat(32 * 1_024 * 1_024);

/** The status of the page for a case. */
const statusOf = (what: string) => (what === '429' ? 503 : 502);

const CASES: [string, Answer][] = [
  ['301 to another place', answers(301, right, { location: elsewhereUrl })],
  ['302 to another place', answers(302, right, { location: elsewhereUrl })],
  ['303 to another place', answers(303, right, { location: elsewhereUrl })],
  ['307 to another place', answers(307, right, { location: elsewhereUrl })],
  ['308 to another place', answers(308, right, { location: elsewhereUrl })],
  ['a refresh header and a link to another place', answers(200, html, { refresh: `0; url=${elsewhereUrl}` })],
  ['500', answers(500, () => ({ error: 'server_error' }))],
  ['500 with good tokens', answers(500, right)],
  ['429', answers(429, () => ({}))],
  ['502 with HTML', answers(502, html, { 'content-type': 'text/html' })],
  ['200 with HTML', answers(200, html, { 'content-type': 'text/html' })],
  ['200 with HTML that is called JSON', answers(200, html)],
  ['200 with nothing', answers(200, () => '')],
  ['204', (response) => void response.writeHead(204).end()],
  ['200 with null', answers(200, () => 'null')],
  ['200 with a list', answers(200, (good) => [good])],
  ['200 with a text', answers(200, (good) => JSON.stringify(good.access_token))],
  ['200 with half a document', answers(200, (good) => JSON.stringify(good).slice(0, -1))],
  ['200 without an access token', answers(200, but({ access_token: undefined }))],
  ['200 without a refresh token', answers(200, but({ refresh_token: undefined }))],
  ['200 with an empty access token', answers(200, but({ access_token: '' }))],
  ['200 with a number for the access token', answers(200, but({ access_token: 7 }))],
  ['200 with an object for the access token', answers(200, but({ access_token: { toString: 'x' } }))],
  ['200 with a list for the refresh token', answers(200, but({ refresh_token: ['rt'] }))],
  ['200 with true for the refresh token', answers(200, but({ refresh_token: true }))],
  [
    '200 with a header hidden in the token',
    answers(200, (good) => but({ access_token: `${good.access_token}\r\nx-evil: 1` })(good)),
  ],
  ['200 with a lone surrogate for a token', answers(200, but({ refresh_token: '\ud800' }))],
  ['200 with an error inside', answers(200, () => ({ error: 'token_expired' }))],
  ['200 and far too much', answers(200, (good) => JSON.stringify(good) + SPACES.slice(0, 2_000_000))],
  [
    '200 and a bomb',
    (response, good) =>
      void response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .end(gzipSync(JSON.stringify(good) + SPACES)),
  ],
  ['a broken connection', (response) => void response.destroy()],
  [
    'a connection that breaks on the way',
    (response) => {
      response.writeHead(200, { 'content-type': 'application/json', 'content-length': '500' });
      response.write('{"access_token":', () => response.destroy());
    },
  ],
];

describe('a token route that answers the exchange with', () => {
  test.each(CASES)(
    '%s: nothing is stored, a page says so, the secret goes nowhere else',
    async (what, answer) => {
      const before = await stored();
      const browser = testApp.session();
      const fresh = await control.addCompany({ name: 'Fresh', plan: 'starter' });
      answerWith(answer);
      const page = await comeBack(browser, fresh);

      expect(page.url.pathname).toBe('/oauth/callback');
      expect(page.status).toBe(statusOf(what));
      const isBroken = what.includes('connection');
      const answered =
        what === '429' ? 'The service takes no more requests' : 'The service did not answer as it should';
      expect(page.body).toContain(isBroken ? 'The service cannot be reached' : answered);
      // Where there is a status to tell; not where the tokens themselves are no good.
      const [status = ''] = /^(?:3|4|5)\d\d/.exec(what) ?? [];
      expect(page.body).toMatch(isBroken ? /could not be reached/ : new RegExp(`answered .*${status}`));
      expect(page.body).toContain('Nothing was stored');
      expect(page.body).toMatch(/href="[^"]*\/install">Start again/);
      expect(page.body).not.toContain('<script>alert');
      expect(page.body).not.toContain(config.service.clientSecret);
      expect(await stored()).toEqual(before);
      expect(arrivals).toEqual([]);
      const posts = tokenServer.requests.filter(({ headers }) => headers.authorization !== undefined);
      expect(posts.map(({ method, url }) => `${method} ${url}`)).toEqual(['POST /auth/oauth/token']);
    },
  );

  test.each([
    [403, 'The user must be an administrator.', 403, 'An administrator is needed'],
    [400, 'Only administrators may authorize.', 403, 'An administrator is needed'],
    [422, 'The code is malformed; ask the administrator of the app.', 400, 'The service refused the install'],
  ])(
    'a refusal in the form of the service’s other errors is told as what it says: %i, %s',
    async (status, message, shown, title) => {
      answerWith(answers(status, () => ({ _error: { status, title: 'Refused', message } })));
      const page = await comeBack(testApp.session(), company);
      expect(page.status).toBe(shown);
      expect(page.body).toContain(title);
      expect(page.body).toContain('Nothing was stored');
    },
  );

  test('any of these leaves an older grant of the company as it was, and it goes on working', async () => {
    const browser = testApp.session();
    await comeBack(browser, company);
    const [id = ''] = (await stored()).instances.map((instance) => instance.id);
    await waitForStatus(browser, id, isSynced);
    const before = await stored();
    for (const [what, answer] of CASES) {
      answerWith(answer);
      expect((await comeBack(browser, company)).status, what).toBe(statusOf(what));
    }
    expect(await stored()).toEqual(before);
    expect(arrivals).toEqual([]);
    const { finished_at } = (await readStatus(browser, id)).resources.contacts ?? {};
    const dashboard = await browser.get(`/instances/${id}`);
    await browser.submit(dashboard.form(`/instances/${id}/sync`));
    const status = await waitForStatus(
      browser,
      id,
      (now) => isSynced(now) && now.resources.contacts?.finished_at !== finished_at,
    );
    expect(status.status).toBe('active');
  });

  test('sense, after all of that: the install works', async () => {
    const browser = testApp.session();
    expect((await comeBack(browser, company)).status).toBe(200);
  });
});

describe('a token route that', () => {
  const client = new OAuthClient({
    authUrl: tokenServer.url,
    clientId: 'app',
    clientSecret: 'secret',
    redirectUri: 'https://app.example/oauth/callback',
    clock: new ServiceClock(),
    timeoutSeconds: 1,
  });

  test.each([
    ['does not answer at all', () => {}],
    [
      'begins an answer and does not end it',
      (response: ServerResponse) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('{"access_token":');
      },
    ],
  ])('%s is given up on, as a service that cannot be reached', async (_what, answer) => {
    tokenServer.answer = answer;
    const error = await client.exchange('code', 'state').catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(exchangeFailure(error).failure).toBe('unreachable');
  });
});
