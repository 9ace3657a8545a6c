import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { type App, createApp } from '../../../src/app.ts';
import { TokenCipher } from '../../../src/auth/token-cipher.ts';
import { encryptTokens } from '../../../src/auth/tokens.ts';
import { loadConfig } from '../../../src/config/config.ts';
import { createLogger } from '../../../src/runtime/logging.ts';
import { openRedis } from '../../../src/runtime/private-redis.ts';
import { createRedis } from '../../../src/runtime/redis.ts';
import { RateBudget } from '../../../src/service/budget.ts';
import { readRateHeaders } from '../../../src/service/headers.ts';
import type { Database } from '../../../src/store/database.ts';
import { openDatabase } from '../../../src/store/open-database.ts';
import { installInstance } from '../../support/install-instance.ts';
import { BenchDatabases, type DatabaseKind, keepVacuumed } from './bench-database.ts';
import { BENCH_REDIRECT_URI, type BenchCompany, type BenchGrant, BenchSandbox } from './bench-sandbox.ts';
import { endIfInterrupted } from './leftovers.ts';
import { WorkerProcess } from './worker-process.ts';

export const SILENT = createLogger({ logLevel: 'silent', production: true });

/** Milliseconds: rotation of these tokens is not due while a bench runs. */
const ROTATION_IN_MS = 30 * 24 * 3_600_000;

/** Loaded before a worker that is measured without the search index. */
export const WITHOUT_SEARCH = { NODE_OPTIONS: `--import ${join(import.meta.dirname, 'without-search.js')}` };

/** An empty directory; it goes with `remove`. */
export function benchDir(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'partner-app-bench-'));
  const remove = () => rmSync(path, { recursive: true, force: true });
  const removed = endIfInterrupted(remove);
  return {
    path,
    remove() {
      remove();
      removed();
    },
  };
}

/** A sandbox, a Redis and a database of the bench's own, and the app on them; all of it goes with the stack. */
export async function openStage(
  stack: AsyncDisposableStack,
  { kind, windowMs, latencyMs }: { kind: DatabaseKind; windowMs?: number; latencyMs?: number },
) {
  const dir = benchDir();
  stack.defer(() => dir.remove());
  const databases = stack.use(await BenchDatabases.start(kind));
  const databaseUrl = await databases.create(dir.path);
  stack.defer(keepVacuumed(databaseUrl));
  const redis = await openRedis({ dir: dir.path, logger: SILENT });
  stack.defer(endIfInterrupted(redis.release));
  stack.defer(() => redis.release());
  const order = {
    ...(windowMs === undefined ? {} : { windowMs }),
    ...(latencyMs === undefined ? {} : { latencyMs }),
  };
  const sandbox = await BenchSandbox.start(order);
  stack.defer(() => sandbox.end());
  const bench = await BenchApp.open(sandbox, redis.url, dir.path, databaseUrl);
  stack.defer(() => bench.close());
  return { dir: dir.path, databases, databaseUrl, redisUrl: redis.url, sandbox, bench };
}

/** The app on a database of its own: this process installs and orders syncs, worker processes do the work. */
export class BenchApp {
  readonly app: App;
  /** The app's database, by connections of the bench's own. */
  readonly db: Database;
  readonly #env: Readonly<Record<string, string>>;
  readonly #workers = new Set<WorkerProcess>();
  readonly #redis: Redis;
  readonly #cipher: TokenCipher;

  private constructor(
    app: App,
    db: Database,
    env: Record<string, string>,
    redis: Redis,
    cipher: TokenCipher,
  ) {
    this.app = app;
    this.db = db;
    this.#env = env;
    this.#redis = redis;
    this.#cipher = cipher;
  }

  /** @param dir for what the app makes for itself */
  static async open(
    sandbox: BenchSandbox,
    redisUrl: string,
    dir: string,
    databaseUrl: string,
  ): Promise<BenchApp> {
    const { apiUrl, authUrl, application } = sandbox.up;
    const env = {
      SERVICE_API_URL: apiUrl,
      SERVICE_AUTH_URL: authUrl,
      CLIENT_ID: application.client_id,
      CLIENT_SECRET: application.client_secret,
      PUBLIC_URL: new URL(BENCH_REDIRECT_URI).origin,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      SESSION_SECRET: randomBytes(32).toString('hex'),
      TOKEN_KEYS: `bench:${randomBytes(32).toString('base64')}`,
    };
    const config = loadConfig(env, { dataDir: dir });
    const app = await createApp(config, redisUrl, SILENT);
    const db = await openDatabase(databaseUrl);
    const installation = await db
      .selectFrom('settings')
      .select('value')
      .where('name', '=', 'installation_id')
      .executeTakeFirstOrThrow();
    const redis = createRedis(redisUrl, 'general', SILENT, { keyPrefix: `${installation.value}:` });
    return new BenchApp(app, db, env, redis, new TokenCipher(config.tokenKeys));
  }

  /** Takes a grant in as an install does. No sync is asked for: {@link sync} does that. @returns the instance's id */
  async install(company: BenchCompany, grant: BenchGrant): Promise<string> {
    const id = `ins_${createHash('sha256').update(company.id).digest('hex').slice(0, 32)}`;
    const { id: companyId, name } = company;
    const { accessToken, refreshToken } = grant;
    await installInstance(this.db, { id, company_id: companyId, name }, Date.now(), {
      ...encryptTokens(this.#cipher, id, accessToken, refreshToken),
      access_expires_at: grant.accessExpiresAt,
      refresh_due_at: Date.now() + ROTATION_IN_MS,
    });
    return id;
  }

  /** Asks whose token it is, as an install does: from the answer the budget knows the company's limit. */
  async identify(company: BenchCompany, { accessToken }: BenchGrant): Promise<void> {
    const response = await fetch(`${this.#env.SERVICE_API_URL}/me`, {
      headers: { authorization: `Bearer ${accessToken}` },
    });
    await response.arrayBuffer();
    const rate = readRateHeaders(Object.fromEntries(response.headers), Date.now());
    if (rate === undefined) throw new Error(`/me: ${response.status}, without the limit's headers`);
    await new RateBudget(this.#redis).observe(company.id, rate);
  }

  /** What the button does. */
  sync(instanceId: string): Promise<boolean> {
    return this.app.control.syncNow(instanceId);
  }

  /** @param env over what every worker needs */
  async startWorker(env: Readonly<Record<string, string>> = {}): Promise<WorkerProcess> {
    const worker = await WorkerProcess.start({ ...this.#env, ...env });
    this.#workers.add(worker);
    return worker;
  }

  /** Ends the workers, then its own part. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    await this.app.close();
    await this.db.destroy();
    this.#redis.disconnect();
  }
}
