import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { configuredSecrets } from '../../src/config/configured-secrets.ts';
import { hideSecrets, rememberSecret } from '../../src/runtime/logging.ts';
import { consent, install } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { Canaries } from './canaries.ts';
import { startEchoProxy } from './echo-proxy.ts';

const OPERATOR_PASSWORD = 'operator: correct horse & battery';

const proxy = await startEchoProxy();
const testApp = await startTestApp({
  workers: false,
  env: {
    SERVICE_API_URL: `${proxy.origin}/api`,
    SERVICE_AUTH_URL: `${proxy.origin}/auth`,
    OPERATOR_PASSWORD,
  },
});
const { config, control, sandbox, log } = testApp;
proxy.lead(sandbox.origin);
const redis = new Redis(testApp.redisUrl);
afterAll(() => redis.disconnect());

beforeEach(async () => {
  // This file has one address, and fails more often than an address may.
  await redis.del('none', ...(await redis.keys('limit:*')));
  proxy.bePolite();
});

/** A visitor who begins an install, and comes back with a code of their own making. */
async function comeBackWith(code: string) {
  const browser = testApp.session();
  const { location } = await browser.get('/install', { follow: false });
  const query = new URLSearchParams({ state: location?.searchParams.get('state') ?? '', code });
  return browser.get(`/oauth/callback?${query}`, { headers: { 'x-request-id': REQUEST_ID } });
}

const REQUEST_ID = 'the-id-of-a-visitor';
const NAME = 'Meridian Outfitters';

const MADE_UP = [
  NAME,
  '"level":"info","time":"',
  '"path":"/instances',
  '"msg":"request"}',
  '/oauth/callback',
  REQUEST_ID,
  'The service did not answer as it should',
];

test('codes that visitors make up blank nothing: neither in the log, nor in the name of a company', async () => {
  for (const code of MADE_UP) {
    for (const status of [400, 500]) {
      proxy.beRude({ path: /oauth\/token/, status, times: 1 });
      const from = log.lines.length;
      expect((await comeBackWith(code)).status).toBe(status === 400 ? 400 : 502);
      await expect.poll(() => log.lines.slice(from).filter(({ msg }) => msg === 'request')).toHaveLength(2);
      expect(log.lines.slice(from)).toContainEqual(
        expect.objectContaining({ path: '/oauth/callback', requestId: REQUEST_ID, msg: 'request' }),
      );
    }
    expect(hideSecrets(code)).toBe(code);
  }
  const said = log.lines.filter(({ err }) => err !== undefined).map(({ msg }) => msg);
  expect(said).toEqual(MADE_UP.map(() => 'The service did not answer as it should'));

  const company = await control.addCompany({ name: NAME, plan: 'starter', contacts: 1, conversations: 1 });
  const browser = testApp.session();
  const id = await install(browser, company);
  expect((await browser.get(`/instances/${id}`)).body).toContain(NAME);
});

test('a code that the service repeats comes out neither on the page nor in the log of its own install', async () => {
  const canaries = new Canaries();
  for (const [path, status, times] of [
    [/oauth\/token/, 400, 1],
    [/oauth\/token/, 401, 1],
    [/oauth\/token/, 500, 1],
  ] as const) {
    const code = `code_${randomBytes(24).toString('base64url')}`;
    canaries.add('code', code);
    proxy.beRude({ path, status, times });
    const page = await comeBackWith(code);
    expect(page.status).toBeGreaterThanOrEqual(400);
    expect(canaries.hits('page', page.body)).toEqual([]);
  }
  // One that was good, and that the next answer repeats in a company's name.
  const company = await control.addCompany({ name: 'Acme', plan: 'starter', contacts: 1, conversations: 1 });
  const goodCode = () => new URLSearchParams(proxy.tokenBodies.at(-2)).get('code') ?? '';
  proxy.amend(/api\/me/, (body) => ({ ...body, name: `Acme, who came with ${goodCode()}` }));
  const browser = testApp.session();
  const page = await consent(browser, await browser.get('/install'), company);
  canaries.add('code', goodCode());
  expect(page.body).toContain('Acme, who came with [redacted]');
  expect(canaries.hits('page', page.body)).toEqual([]);
  expect(canaries.hits('log', log.text())).toEqual([]);
});

test('what the configuration keeps secret is known for good, however many tokens come and go', async () => {
  for (let index = 0; index < 5_001; index++) rememberSecret(randomBytes(24).toString('base64url'));
  const secrets = configuredSecrets(config, testApp.redisUrl);
  expect(secrets).toEqual(
    expect.arrayContaining([config.service.clientSecret, config.sessionSecret, OPERATOR_PASSWORD]),
  );
  for (const secret of secrets) expect(hideSecrets(`with ${secret}.`)).not.toContain(secret);
  proxy.beRude({ path: /oauth\/token/, status: 400, times: 1 });
  const page = await comeBackWith('a-code-of-a-visitor');
  expect(page.body).toContain('[redacted]');
  expect(page.body).not.toContain(config.service.clientSecret);
  expect(log.text()).not.toContain(config.service.clientSecret);
});
