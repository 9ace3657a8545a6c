import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Express } from 'express';
import type { Page as BrowserPage } from 'playwright-core';
import { afterAll } from 'vitest';
import { Installs } from '../../src/auth/install.ts';
import { createTokenPace, OAuthClient } from '../../src/auth/oauth-client.ts';
import { TokenCipher } from '../../src/auth/token-cipher.ts';
import { feedLines } from '../../src/changes/delivery.ts';
import { loadConfig } from '../../src/config/config.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import { createSandbox } from '../../src/sandbox/sandbox.ts';
import { RateBudget } from '../../src/service/budget.ts';
import { ServiceClock } from '../../src/service/headers.ts';
import { HttpClient } from '../../src/service/http.ts';
import { AllowedOrigins } from '../../src/service/next-url.ts';
import { ServiceApi } from '../../src/service/service-api.ts';
import { SyncControl } from '../../src/sync/control.ts';
import { StatusReader } from '../../src/sync/status.ts';
import { createWebApp, type OperationsOverview, type WebDependencies } from '../../src/web/web-app.ts';
import { type SandboxCompany, SandboxControl } from '../acceptance/support/sandbox-control.ts';
import { documentsOf, NOW, openTestStore, type TestStore } from '../store/test-store.ts';
import { HttpBrowser, type Page } from '../support/http-browser.ts';
import { type TestLogger, testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { RESOURCES } from '../support/usual-resources.ts';

/** What opens `/ops`. */
export const PASSWORD = 'correct: hörse';

const MINUTE_MS = 60_000;
const COLUMNS = [
  { title: 'Name', path: 'name' },
  { title: 'Handles', path: 'handles.handle' },
  { title: 'Created', path: 'created_at' },
];

/** The web app on SQLite with the sandbox behind it, and no worker. Its pages are at the moment {@link NOW}. */
export interface StartedWeb {
  url: string;
  store: TestStore;
  sandbox: SandboxControl;
  log: TestLogger;
  deps: WebDependencies;
  app: Express;
  /** What `/ops` says of queues and workers. */
  process: Pick<OperationsOverview, 'queues' | 'workers'>;
  /** Opens another browser. */
  browser(): HttpBrowser;
  /** Installs a company in a browser and answers the page it leads to. @param at where the browser begins */
  install(browser: HttpBrowser, company: SandboxCompany, at?: string | URL): Promise<Page>;
  /** Installs a new company of this name, in a new browser unless one is given. */
  installed(
    name: string,
    browser?: HttpBrowser,
  ): Promise<{ company: SandboxCompany; browser: HttpBrowser; id: string }>;
  /** The same by clicks, on a page of a real browser. @returns the instance's id */
  installedOn(page: BrowserPage, name: string): Promise<string>;
  /** Starts the app once more on the same parts, with changes. */
  restart(changes: Partial<WebDependencies>): Promise<HttpBrowser>;
}

/** Starts one; everything ends when the test file is through. */
export async function startWeb(changes: Partial<WebDependencies> = {}): Promise<StartedWeb> {
  const store = await openTestStore('sqlite');
  const log = testLogger();
  const { server, url } = await listen();
  const publicUrl = changes.publicUrl ?? url;
  const sandbox = await createSandbox({ redirectUris: [`${publicUrl}/oauth/callback`] });
  const { client_id: CLIENT_ID, client_secret: CLIENT_SECRET } = sandbox.application;
  const service = { SERVICE_API_URL: sandbox.apiUrl, SERVICE_AUTH_URL: sandbox.authUrl };
  const env = { ...service, CLIENT_ID, CLIENT_SECRET, PUBLIC_URL: publicUrl };
  const config = loadConfig(env, { dataDir: store.url.replace(/^file:|\/[^/]*$/g, '') });
  const redis = createRedis((await startTestRedis()).url, 'general', log.logger);
  const http = new HttpClient(config.outbound);
  const [clock, budget] = [new ServiceClock(), new RateBudget(redis)];
  const { apiUrl, nextOrigins } = config.service;
  const api = new ServiceApi({
    apiUrl,
    http,
    clock,
    budget,
    origins: new AllowedOrigins(apiUrl, nextOrigins),
  });
  const { outbound } = config;
  const redirectUri = `${publicUrl}/oauth/callback`;
  const oauth = new OAuthClient({
    ...config.service,
    ...{ redirectUri, clock, outbound, pace: createTokenPace(redis) },
  });
  const shared = { ...store, resources: RESOURCES, intervalMs: 60 * MINUTE_MS, checkIntervalMs: MINUTE_MS };
  const status = new StatusReader({ ...shared, budget, clock, hasHandler: true });
  const control = new SyncControl({
    ...shared,
    enqueueLists: async () => undefined,
    enqueueDeliveries: async () => undefined,
    now: () => NOW,
  });
  const process: StartedWeb['process'] = { queues: undefined, workers: undefined };
  const deps: WebDependencies = {
    publicUrl,
    proxyHops: 0,
    sessionSecret: config.sessionSecret,
    production: false,
    isSandbox: false,
    appInfo: { name: 'Test app', description: 'Tests.', colour: '#0b6e5f', support: 'help@test.example' },
    redis,
    browsers: store.browsers,
    installs: new Installs({
      ...{ oauth, api, cipher: new TokenCipher(config.tokenKeys), store: store.installs },
      resources: RESOURCES.map(({ name }) => name),
      onInstalled: (id) => control.syncNow(id),
    }),
    control,
    status,
    instances: store.instances,
    records: store.records,
    changes: {
      feed: async function* (id, resource, range) {
        yield* feedLines(store.changes, (await store.list({ instanceId: id, resource })).id, range);
      },
    },
    actions: store.actions,
    resources: [
      { name: 'contacts', title: 'Contacts', columns: COLUMNS },
      { name: 'conversations', title: 'Conversations' },
    ],
    readiness: async () => ({ ok: true, checks: { database: 'ok' } }),
    metrics: async () => ({ contentType: 'text/plain; version=0.0.4', body: 'up 1\n' }),
    operations: {
      password: PASSWORD,
      overview: async (query) => ({ ...(await status.readPage(query)), ...process }),
      troubles: (id) => status.readTroubles(id),
    },
    logger: log.logger,
    now: () => NOW,
    // Every browser of the tests has the same address.
    limits: { installs: 100_000, operator: 100_000, operatorInAll: 100_000 },
    ...changes,
  };
  const app = createWebApp(deps);
  server.on('request', app);
  afterAll(async () => {
    redis.disconnect();
    await Promise.all([http.close(), sandbox.close()]);
  });
  const web: StartedWeb = {
    ...{ url, store, sandbox: new SandboxControl(sandbox.origin), log, deps, app, process },
    browser: () => new HttpBrowser(publicUrl),
    async install(browser, company, at = '/install') {
      const consent = await browser.get(at);
      const teammate_id = company.teammates.find(({ is_admin }) => is_admin)?.id ?? '';
      return browser.post(consent.url, { teammate_id, decision: 'approve' });
    },
    async installed(name, browser = web.browser()) {
      const company = await web.sandbox.addCompany({ name });
      const { url } = await web.install(browser, company);
      return { company, browser, id: url.pathname.split('/')[2] ?? '' };
    },
    async installedOn(page, name) {
      await web.sandbox.addCompany({ name });
      await page.goto(`${publicUrl}/install`);
      await page
        .getByRole('group', { name })
        .getByRole('radio', { name: /Administrator$/ })
        .first()
        .check();
      await page.getByRole('button', { name: 'Approve' }).click();
      await page.waitForURL('**/instances/*');
      return new URL(page.url()).pathname.split('/')[2] ?? '';
    },
    async restart(changes) {
      const again = await listen();
      again.server.on('request', createWebApp({ ...deps, publicUrl: again.url, ...changes }));
      return new HttpBrowser(again.url);
    },
  };
  return web;
}

/** Contacts that fail, with a dead letter and a rejected record; conversations that are held back, and paused. */
export async function makeTrouble({ runs, dueLists, actions, ...store }: TestStore, instanceId: string) {
  const [contacts, conversations] = ['contacts', 'conversations'].map((resource) => ({
    instanceId,
    resource,
  }));
  const list = await store.copy([...documentsOf(12), '{"no":"id"}'], contacts);
  await store.bury(list);
  const failed = { kind: 'refused', detail: 'It broke: <403>.' } as const;
  await runs.fail(await store.claimRun(list), failed, NOW - 60_000, NOW);
  const held = await store.copy(documentsOf(12), conversations);
  const again = await store.claimRun(held);
  await store.finish(again, { missing: 12, held: 12, heldRun: again.run });
  await dueLists.pause(held, NOW - 900_000);
  const pause = { instanceId, resource: 'conversations', action: 'pause', record: null };
  await actions.add({ ...pause, by: 'operator anna' }, NOW - 900_000);
  return { contacts: list };
}

async function listen() {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}
