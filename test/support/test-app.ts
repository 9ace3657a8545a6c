import { afterAll } from 'vitest';
import { type App, createApp } from '../../src/app.ts';
import { EventSender } from '../../src/changes/app-events.ts';
import type { ChangeHandler } from '../../src/changes/change-handler.ts';
import { type Config, loadConfig } from '../../src/config/config.ts';
import type { Settings } from '../../src/integration/types.ts';
import type { Sandbox } from '../../src/sandbox/sandbox.ts';
import type { Resource } from '../../src/sync/resource.ts';
import { takePort } from '../../src/web/listen.ts';
import { SandboxControl } from '../acceptance/support/sandbox-control.ts';
import { createCheckedSandbox } from '../sandbox/support/checked-sandbox.ts';
import { findFreePort } from './free-port.ts';
import { tempDir } from './temp-dir.ts';
import { type TestLogger, testLogger } from './test-logger.ts';
import { createTestPostgres } from './test-postgres.ts';
import { startTestRedis } from './test-redis.ts';
import { APP_INFO, RESOURCES } from './usual-resources.ts';

/** What a test wants otherwise. */
export interface TestAppOptions {
  sandbox?: { windowMs?: number; latencyMs?: number };
  /** Environment variables over those that the test app sets. */
  env?: Record<string, string>;
  handler?: ChangeHandler;
  settings?: Settings;
  /** Contacts and conversations by default. */
  resources?: readonly Resource[];
  onEvent?: EventSender['handler'];
  /** Whether this process answers browsers, and works on jobs; it does both by default. */
  web?: boolean;
  workers?: boolean;
  /** A file by default. */
  database?: 'sqlite' | 'postgres';
  /** A Redis instead of one of its own. */
  redisUrl?: string;
}

/** The sandbox, a Redis and the app, all real, on ports and files of their own. */
export interface TestApp {
  app: App;
  config: Config;
  /** The environment that another process needs to join in. */
  env: Record<string, string>;
  redisUrl: string;
  sandbox: Sandbox;
  control: SandboxControl;
  log: TestLogger;
}

const closers: (() => Promise<void>)[] = [];

afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Starts a test app; everything ends when the test file is through. */
export async function startTestApp(options: TestAppOptions = {}): Promise<TestApp> {
  const port = await findFreePort();
  const publicUrl = `http://127.0.0.1:${port}`;
  const redirectUris = [`${publicUrl}/oauth/callback`];
  const sandbox = await createCheckedSandbox({ ...options.sandbox, redirectUris });
  closers.push(() => sandbox.close());
  const redisUrl = options.redisUrl ?? (await startTestRedis()).url;
  const dir = tempDir();
  const postgres = options.database === 'postgres' ? await createTestPostgres() : undefined;
  if (postgres) closers.push(postgres.drop);
  const env = {
    SERVICE_API_URL: sandbox.apiUrl,
    SERVICE_AUTH_URL: sandbox.authUrl,
    CLIENT_ID: sandbox.application.client_id,
    CLIENT_SECRET: sandbox.application.client_secret,
    PUBLIC_URL: publicUrl,
    PORT: String(port),
    DATABASE_URL: postgres?.url ?? `file:${dir}/app.db`,
    REDIS_URL: redisUrl,
    ...options.env,
  };
  const config = loadConfig(env, { dataDir: dir });
  const secrets = {
    SESSION_SECRET: config.sessionSecret,
    TOKEN_KEYS: config.tokenKeys.map(({ id, key }) => `${id}:${key.toString('base64')}`).join(','),
  };
  const log = testLogger();
  const events = new EventSender(log.logger);
  events.handler = options.onEvent;
  const { handler, settings, resources = RESOURCES } = options;
  const fork = { handler, ...(settings && { settings }), events, resources, appInfo: APP_INFO };
  // A function cannot go to another process.
  const app = await createApp(config, redisUrl, log.logger, fork, { deliveries: 'here' });
  closers.push(() => app.close());
  closers.push(async () => app.end());
  if (options.web !== false) {
    const web = await takePort({ ...config, variable: 'PORT' });
    closers.push(() => web.close());
    await app.startWeb(web);
  }
  if (options.workers !== false) {
    const workers = app.startWorkers();
    closers.push(() => workers.close());
  }
  return {
    app,
    config,
    env: { ...env, ...secrets },
    redisUrl,
    sandbox,
    control: new SandboxControl(sandbox.origin, sandbox),
    log,
  };
}
