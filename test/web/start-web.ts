import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Express } from 'express';
import { Redis } from 'ioredis';
import { afterAll } from 'vitest';
import type { Installs } from '../../src/auth/install.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { createWebApp, type WebDependencies } from '../../src/web/web-app.ts';
import { HttpBrowser, type Page } from '../support/http-browser.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type TestLogger, testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { FakeDomain } from './fake-domain.ts';
import { NOW } from './status-fixtures.ts';

/** A web app that listens, with what stands behind it. */
export interface StartedWeb {
  url: string;
  domain: FakeDomain;
  log: TestLogger;
  redis: Redis;
  app: Express;
  /** Opens another browser. */
  browser(): HttpBrowser;
}

const COLUMNS = [
  { title: 'Name', path: 'name' },
  { title: 'Handles', path: 'handles.handle' },
  { title: 'Created', path: 'created_at' },
];

const closers: (() => Promise<void>)[] = [];

afterAll(async () => {
  for (const close of closers.splice(0)) await close();
});

/** Starts the web app before the stand-in domain, with a Redis of its own unless one is given. */
export async function startWeb(changes: Partial<WebDependencies> = {}): Promise<StartedWeb> {
  const redis = changes.redis ?? new Redis((await startTestRedis()).url);
  const db = await openDatabase(`file:${tempDir()}/app.db`);
  const domain = new FakeDomain(db);
  const log = testLogger();
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const app = createWebApp({
    publicUrl: url,
    proxyHops: 0,
    sessionSecret: 'a secret of the tests',
    production: false,
    isSandbox: false,
    appInfo: {
      name: 'Test app',
      description: 'Tests pages.',
      colour: '#0b6e5f',
      support: 'help@test.example',
    },
    redis,
    browsers: domain.browsers,
    installs: domain.installs as Installs,
    control: domain.control,
    status: domain.status,
    instances: { find: domain.status.read },
    records: domain.reader,
    changes: domain.changes,
    actions: domain.actions,
    resources: [
      { name: 'contacts', title: 'Contacts', columns: COLUMNS },
      { name: 'conversations', title: 'Conversations' },
    ],
    readiness: async () => ({ ok: true, checks: { database: 'ok' } }),
    metrics: async () => ({ contentType: 'text/plain; version=0.0.4', body: 'up 1\n' }),
    logger: log.logger,
    now: () => NOW,
    // Every browser of the tests has the same address.
    limits: { installs: 100_000, operator: 100_000, operatorInAll: 100_000 },
    ...changes,
  });
  server.on('request', app);
  closers.push(async () => {
    server.closeAllConnections();
    server.close();
    await db.destroy();
    // One that was given belongs to the giver.
    if (!changes.redis) redis.disconnect();
  });
  return { url, domain, log, redis, app, browser: () => new HttpBrowser(url) };
}

/** Installs in a browser and answers the page it leads to, the dashboard; the instance gets the id `code`. */
export async function install(browser: HttpBrowser, code = 'ins_1', at = '/install'): Promise<Page> {
  const start = await browser.get(at, { follow: false });
  const state = start.location?.searchParams.get('state') ?? '';
  return browser.get(`/oauth/callback?state=${state}&code=${code}`);
}
