import { createHash, randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Redis } from 'ioredis';
import { type App, createApp } from '../../../src/app.ts';
import { TokenCipher } from '../../../src/auth/token-cipher.ts';
import { encryptTokens } from '../../../src/auth/tokens.ts';
import { RateBudget } from '../../../src/client/budget/rate-budget.ts';
import { readRateHeaders } from '../../../src/client/rate-headers.ts';
import { loadConfig } from '../../../src/config.ts';
import { createLogger } from '../../../src/runtime/logging.ts';
import { openRedis } from '../../../src/runtime/private-redis.ts';
import { createRedis } from '../../../src/runtime/redis.ts';
import type { Database } from '../../../src/store/database.ts';
import { openDatabase } from '../../../src/store/open-database.ts';
import { installInstance } from '../../support/install-instance.ts';
import {
  BENCH_REDIRECT_URI,
  type BenchCompany,
  type BenchGrant,
  type BenchSandbox,
} from './bench-sandbox.ts';
import { endIfInterrupted } from './leftovers.ts';
import { WorkerProcess } from './worker-process.ts';

const SILENT = createLogger({ logLevel: 'silent', production: true });

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

/** A Redis of the bench's own, empty. */
export async function startBenchRedis(
  dir: string,
): Promise<{ url: string; kind: string; end(): Promise<void> }> {
  const { url, kind, release } = await openRedis({ dir, logger: SILENT });
  const ended = endIfInterrupted(release);
  return { url, kind, end: () => release().finally(ended) };
}

/** The app on a database of its own: this process installs and orders syncs, worker processes do the work. */
export class BenchApp {
  readonly app: App;
  /** What a worker process needs to join in. */
  readonly env: Readonly<Record<string, string>>;
  readonly databasePath: string;
  readonly #workers = new Set<WorkerProcess>();
  readonly #redis: Redis;
  readonly #budget: RateBudget;
  readonly #db: Database;
  readonly #cipher: TokenCipher;

  private constructor(
    app: App,
    env: Record<string, string>,
    databasePath: string,
    redisUrl: string,
    db: Database,
    cipher: TokenCipher,
  ) {
    this.#db = db;
    this.#cipher = cipher;
    this.#redis = createRedis(redisUrl, 'general', SILENT);
    this.#budget = new RateBudget(this.#redis);
    this.app = app;
    this.env = env;
    this.databasePath = databasePath;
  }

  /** @param dir where its database lies */
  static async open(sandbox: BenchSandbox, redisUrl: string, dir: string): Promise<BenchApp> {
    const databasePath = join(dir, 'app.db');
    const { apiUrl, authUrl, application } = sandbox.up;
    const env = {
      SERVICE_API_URL: apiUrl,
      SERVICE_AUTH_URL: authUrl,
      CLIENT_ID: application.client_id,
      CLIENT_SECRET: application.client_secret,
      PUBLIC_URL: new URL(BENCH_REDIRECT_URI).origin,
      DATABASE_URL: `file:${databasePath}`,
      REDIS_URL: redisUrl,
      SESSION_SECRET: randomBytes(32).toString('hex'),
      TOKEN_KEYS: `bench:${randomBytes(32).toString('base64')}`,
    };
    const config = loadConfig(env, { dataDir: dir });
    const app = await createApp(config, redisUrl, SILENT);
    const db = await openDatabase(config.databaseUrl);
    return new BenchApp(app, env, databasePath, redisUrl, db, new TokenCipher(config.tokenKeys));
  }

  /** Takes a grant in as an install does. No sync is asked for: {@link sync} does that. @returns the instance's id */
  async install(company: BenchCompany, grant: BenchGrant): Promise<string> {
    const id = `ins_${createHash('sha256').update(company.id).digest('hex').slice(0, 32)}`;
    const { id: companyId, name } = company;
    const { accessToken, refreshToken } = grant;
    await installInstance(this.#db, { id, company_id: companyId, name }, Date.now(), {
      ...encryptTokens(this.#cipher, id, accessToken, refreshToken),
      access_expires_at: grant.accessExpiresAt,
    });
    return id;
  }

  /** Asks whose token it is, as an install does: from the answer the budget knows the company's limit. */
  async identify(company: BenchCompany, { accessToken }: BenchGrant): Promise<void> {
    const response = await fetch(`${this.env.SERVICE_API_URL}/me`, {
      headers: { authorization: `Bearer ${accessToken}` },
    });
    await response.arrayBuffer();
    const rate = readRateHeaders(Object.fromEntries(response.headers), Date.now());
    if (rate === undefined) throw new Error(`/me: ${response.status}, without the limit's headers`);
    await this.#budget.observe(company.id, rate);
  }

  /** What the button does. */
  sync(instanceId: string): Promise<boolean> {
    return this.app.control.syncNow(instanceId);
  }

  /** Whether every resource has come to the end of its run. */
  async isComplete(instanceId: string): Promise<boolean> {
    const status = await this.app.control.status(instanceId);
    const resources = Object.values(status?.resources ?? {});
    return resources.every(({ state, finished_at }) => state === 'idle' && finished_at !== null);
  }

  /** @param env over what every worker needs */
  async startWorker(env: Readonly<Record<string, string>> = {}): Promise<WorkerProcess> {
    const worker = await WorkerProcess.start({ ...this.env, ...env });
    this.#workers.add(worker);
    return worker;
  }

  /** Ends the workers, then its own part. */
  async close(): Promise<void> {
    await Promise.all([...this.#workers].map((worker) => worker.stop()));
    await this.app.close();
    await this.#db.destroy();
    this.#redis.disconnect();
  }
}
