import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { request } from 'undici';
import { afterAll } from 'vitest';
import { createSandbox, type Sandbox, type SandboxOptions } from '../../../src/sandbox/sandbox.ts';
import type { JournalRow } from '../../../src/sandbox/types.ts';
import { findFreePort } from '../../support/free-port.ts';
import { HttpBrowser, type Page } from '../../support/http-browser.ts';
import { spawnEntry, type TestProcess } from '../../support/spawn-entry.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { createTestPostgres } from '../../support/test-postgres.ts';
import { startTestRedis, type TestRedis } from '../../support/test-redis.ts';
import { waitFor } from '../../support/wait-for.ts';
import { isBeingWritten } from './database.ts';
import { type SandboxCompany, SandboxControl } from './sandbox-control.ts';

/** A resource as `/instances/:id/status` tells it. */
export interface ResourceStatus {
  state: 'idle' | 'waiting' | 'running' | 'failed';
  pages: number;
  records: number;
  deleted: number;
  rejected: number;
  missing: number;
  held_deletions: number;
  checked_at: string | null;
  full_at: string | null;
  /** Null where the web process has no handler. */
  handler: {
    pending: number;
    dead_letters: number;
    last_error: string | null;
    next_try_at: string | null;
  } | null;
  problems: { dead_letters: { id: string; error: string; at: string }[] };
  started_at: string | null;
  finished_at: string | null;
  error: string | null;
}

/** `GET /instances/:id/status`. */
export interface Status {
  id: string;
  name: string;
  company_id: string | null;
  status: 'active' | 'paused' | 'needs_reauthorization' | 'disconnected';
  token: {
    access_expires_at: string | null;
    refresh_expires_at: string | null;
    refresh_due_at: string | null;
    rotations: number;
  };
  budget: { limit: number | null; remaining: number | null; blocked_until: string | null };
  resources: { contacts: ResourceStatus; conversations: ResourceStatus };
}

/** How a process of the app starts otherwise than usual. */
export interface StartOptions {
  env?: Record<string, string>;
  /** The file of a handler in place of the fork's. */
  handler?: string;
  /** How far its local clock is ahead of the right time, in milliseconds; negative behind it. */
  clockMs?: number;
  /** Its current directory, in place of the world's. */
  cwd?: string;
}

const closers: (() => Promise<unknown>)[] = [];

afterAll(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** The sandbox, a Redis and a place for the app, all real, with ports and files of their own. */
export class World {
  readonly sandbox: Sandbox;
  readonly control: SandboxControl;
  readonly redis: TestRedis;
  /** The current directory of the app's processes. */
  readonly dir = tempDir();
  /** The environment of the app's processes. */
  readonly env: Record<string, string>;

  constructor(sandbox: Sandbox, redis: TestRedis, env: Record<string, string>) {
    this.sandbox = sandbox;
    this.control = new SandboxControl(sandbox.origin, sandbox);
    this.redis = redis;
    this.env = { DATABASE_URL: `file:${this.dir}/app.db`, ...env };
  }

  get databaseUrl(): string {
    return this.env.DATABASE_URL ?? '';
  }

  get publicUrl(): string {
    return this.env.PUBLIC_URL ?? '';
  }

  /** Starts the web process, and waits until it answers. Its log is its output. */
  async startWeb(options: StartOptions = {}): Promise<TestProcess> {
    const web = this.#spawn('src/web.ts', options);
    await this.#waitUntilUp(web, Number(options.env?.PORT ?? this.env.PORT));
    return web;
  }

  /** Starts a worker process, and waits until it is ready. */
  async startWorker(options: StartOptions = {}): Promise<TestProcess> {
    const port = Number(options.env?.WORKER_PORT ?? (await findFreePort()));
    const worker = this.#spawn('src/worker.ts', {
      ...options,
      env: { ...options.env, WORKER_PORT: String(port) },
    });
    await this.#waitUntilUp(worker, port);
    return worker;
  }

  /** Starts a web process and one worker. */
  async start(options: StartOptions = {}): Promise<{ web: TestProcess; worker: TestProcess }> {
    const web = await this.startWeb(options);
    return { web, worker: await this.startWorker(options) };
  }

  /** Starts what `npm start` does, web and workers in one process, for tests that treat both alike. */
  async startAll(options: StartOptions = {}): Promise<TestProcess> {
    const all = this.#spawn('src/start.ts', options);
    await this.#waitUntilUp(all, Number(this.env.PORT));
    return all;
  }

  /** Runs a command of the app, such as `src/cli.ts`, to its end. */
  async run(entry: string, args: readonly string[] = []): Promise<{ code: number | null; output: string }> {
    const process = spawnEntry(entry, this.env, { cwd: this.dir, args });
    const { code } = await process.exited;
    return { code, output: process.output() };
  }

  /** A new browser, without cookies. */
  browser(): HttpBrowser {
    return new HttpBrowser(this.publicUrl);
  }

  /** Answers the consent page for a company, as its administrator unless another is named. */
  consent(
    browser: HttpBrowser,
    page: Page,
    company: SandboxCompany,
    answer: { decision?: 'approve' | 'deny'; teammateId?: string; follow?: boolean } = {},
  ): Promise<Page> {
    const administrator = company.teammates.find(({ is_admin }) => is_admin)?.id ?? '';
    const { decision = 'approve', teammateId = administrator, follow = true } = answer;
    return browser.post(page.url, { teammate_id: teammateId, decision }, { follow });
  }

  /** Goes from the button to the consent's redirect: the address of the callback, not yet visited. */
  async authorize(browser: HttpBrowser, company: SandboxCompany): Promise<URL> {
    const page = await this.consent(browser, await browser.get('/install'), company, { follow: false });
    if (page.location === undefined) throw new Error(`no redirect: ${page.status} ${page.text()}`);
    return page.location;
  }

  /** Installs a company as an administrator does, to the dashboard. @returns the instance's id */
  async install(browser: HttpBrowser, company: SandboxCompany): Promise<string> {
    return instanceOf(await this.consent(browser, await browser.get('/install'), company));
  }

  /** Installs a new company, in a browser of its own unless one is given. */
  async installed(facts: Parameters<SandboxControl['addCompany']>[0], browser = this.browser()) {
    const company = await this.control.addCompany(facts);
    return { company, browser, id: await this.install(browser, company) };
  }

  /** Installs a new company, and waits for its first sync. */
  async synced(facts: Parameters<SandboxControl['addCompany']>[0]) {
    const instance = await this.installed(facts);
    await this.waitForSync(instance.browser, instance.id);
    return instance;
  }

  /** The requests that count in a company's limit, oldest first. */
  async counted({ id }: SandboxCompany, after = 0): Promise<JournalRow[]> {
    return (await this.control.requests(after)).filter(
      ({ company_id, application, path }) =>
        company_id === id && application !== null && !path.startsWith('/oauth'),
    );
  }

  async status(browser: HttpBrowser, id: string): Promise<Status> {
    const page = await browser.get(`/instances/${id}/status`);
    if (page.status !== 200) throw new Error(`status: ${page.status} ${page.text()}`);
    return page.json<Status>();
  }

  /** Polls the status until it meets a condition. @throws Error with the condition and the last status */
  waitForStatus(
    browser: HttpBrowser,
    id: string,
    condition: (status: Status) => boolean,
    timeoutMs?: number,
  ): Promise<Status> {
    const check = async () => {
      const status = await this.status(browser, id);
      if (condition(status)) return status;
      throw new Error(JSON.stringify(status));
    };
    return waitFor(check, `the status to meet ${condition}`, timeoutMs);
  }

  /** Waits until both lists have come to the end of a run that began after the call, or of the first one. */
  waitForSync(browser: HttpBrowser, id: string, timeoutMs?: number): Promise<Status> {
    return this.waitForStatus(browser, id, isSynced, timeoutMs);
  }

  /** Waits until the handler has got all changes of both lists, or made dead letters of them. */
  waitForDelivery(browser: HttpBrowser, id: string, timeoutMs?: number): Promise<Status> {
    const isDelivered = (status: Status) =>
      isSynced(status) && Object.values(status.resources).every(({ handler }) => handler?.pending === 0);
    return this.waitForStatus(browser, id, isDelivered, timeoutMs);
  }

  /** Stops a process as SIGSTOP does, but not within a transaction: what it has locked would be so until it goes on. */
  async stopBetweenWrites(process: TestProcess): Promise<void> {
    for (;;) {
      process.signal('SIGSTOP');
      // A signal takes effect at each thread's next turn, of which nothing tells.
      await sleep(50);
      if (!(await isBeingWritten(this.databaseUrl))) return;
      process.signal('SIGCONT');
      await sleep(20);
    }
  }

  /** Presses a button of the overview or else of the settings, such as `sync`, `pause` or `disconnect`. */
  async press(browser: HttpBrowser, id: string, action: string, fields = {}): Promise<Page> {
    const path = `/instances/${id}`;
    const overview = await browser.get(path);
    const isThere = overview.body.includes(`action="${path}/${action}"`);
    const page = isThere ? overview : await browser.get(`${path}/settings`);
    return browser.submit(page.form(`${path}/${action}`), fields);
  }

  /** The documents of a list as its download has them, one line each. */
  async download(browser: HttpBrowser, id: string, list: 'contacts' | 'conversations'): Promise<string[]> {
    const page = await browser.get(`/instances/${id}/${list}.ndjson`);
    if (page.status !== 200) throw new Error(`download: ${page.status}`);
    return page.body.split('\n').filter((line) => line !== '');
  }

  #spawn(entry: string, { env, handler, clockMs, cwd = this.dir }: StartOptions): TestProcess {
    const extra = {
      ...(handler === undefined ? {} : { TEST_HANDLER: handler }),
      ...(clockMs === undefined ? {} : localClock(String(clockMs))),
    };
    return spawnEntry(entry, { ...this.env, ...env, ...extra }, { cwd });
  }

  async #waitUntilUp(started: TestProcess, port: number): Promise<void> {
    let hasEnded = false;
    void started.exited.then(() => {
      hasEnded = true;
    });
    await waitFor(async () => {
      if (hasEnded) return 'ended';
      const answer = await request(`http://127.0.0.1:${port}/readyz`);
      await answer.body.dump();
      return answer.statusCode === 200 && 'ready';
    }, 'the process to be ready');
    if (hasEnded) throw new Error(`It ended instead of starting:\n${started.output()}`);
  }
}

/** The variables of a process whose local clock is off: by milliseconds, or by those in a file. */
export function localClock(ahead: string): Record<string, string> {
  const hook = pathToFileURL(join(import.meta.dirname, 'local-clock.js')).href;
  return { TEST_CLOCK: ahead, NODE_OPTIONS: `--import=${hook}` };
}

/** Whether both lists have come to the end of their last run. */
export function isSynced({ resources }: Status): boolean {
  return Object.values(resources).every(({ state, finished_at }) => state === 'idle' && finished_at !== null);
}

/** The instance whose dashboard a page is. */
export function instanceOf(page: Page): string {
  const id = /^\/instances\/(\w+)$/.exec(page.url.pathname)?.[1];
  if (page.status === 200 && id !== undefined) return id;
  throw new Error(`not on a dashboard: ${page.status} at ${page.url.pathname}: ${page.text()}`);
}

/**
 * Makes a world; nothing of the app runs in it yet. All of it ends when the test file is through.
 *
 * @param options.sandbox how its sandbox is made
 * @param options.env variables over those that the app's processes have
 * @param options.isPostgres whether its database is one of PostgreSQL; by default TEST_DATABASE says so
 */
export async function createWorld(
  options: { sandbox?: SandboxOptions; env?: Record<string, string>; isPostgres?: boolean } = {},
): Promise<World> {
  const { isPostgres = process.env.TEST_DATABASE === 'postgres' } = options;
  const port = await findFreePort();
  const publicUrl = options.env?.PUBLIC_URL ?? `http://127.0.0.1:${port}`;
  const sandbox = await createSandbox(options.sandbox);
  closers.push(() => sandbox.close());
  // Form-encoding would change its credentials, which go into Basic as they are.
  const application = sandbox.register({
    name: 'Odd credentials',
    client_id: 'odd+client/100%',
    client_secret: 'odd: s@ndbox+only/100%=~',
    redirect_uris: [`${publicUrl}/oauth/callback`],
  });
  const redis = await startTestRedis();
  const postgres = isPostgres ? await createTestPostgres() : undefined;
  if (postgres !== undefined) closers.push(postgres.drop);
  return new World(sandbox, redis, {
    SERVICE_API_URL: sandbox.apiUrl,
    SERVICE_AUTH_URL: sandbox.authUrl,
    CLIENT_ID: application.client_id,
    CLIENT_SECRET: application.client_secret,
    PUBLIC_URL: publicUrl,
    PORT: String(port),
    REDIS_URL: redis.url,
    SESSION_SECRET: randomBytes(32).toString('base64'),
    TOKEN_KEYS: `test:${randomBytes(32).toString('base64')}`,
    ...(postgres === undefined ? {} : { DATABASE_URL: postgres.url }),
    ...options.env,
  });
}
