import { type ChildProcess, fork, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { createApp } from '../../src/app.ts';
import { TokenCipher } from '../../src/auth/token-cipher.ts';
import { encryptTokens } from '../../src/auth/tokens.ts';
import { loadConfig } from '../../src/config/config.ts';
import { createLogger } from '../../src/runtime/logging.ts';
import { openRedis } from '../../src/runtime/private-redis.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import { createSandbox } from '../../src/sandbox/sandbox.ts';
import type { Company, CompanySpec, SandboxOptions } from '../../src/sandbox/types.ts';
import { RateBudget } from '../../src/service/budget.ts';
import { readRateHeaders } from '../../src/service/headers.ts';
import type { Database } from '../../src/store/database.ts';
import { keepSetting, openDatabase } from '../../src/store/open-database.ts';
import { installInstance } from '../support/install-instance.ts';
import { runStatement, startPostgresServer } from '../support/postgres-server.ts';
import { APP_INFO, RESOURCES } from '../support/usual-resources.ts';
import type { BareDone, BareOrder } from './bare-loop.ts';

const DATABASES = ['sqlite', 'postgres'] as const;
export type DatabaseKind = (typeof DATABASES)[number];

const SILENT = createLogger({ logLevel: 'silent', production: true });

/** A handler's module that exports none, or one that BENCH_WORK names. */
export const BUSY_HANDLER = join(import.meta.dirname, 'busy-handler.ts');

const ROOT = join(import.meta.dirname, '../..');
const PRELOAD = ['--import', join(ROOT, 'src/runtime/preload.js')];
const WORKER_READY = 'the workers run';
const ROTATION_IN_MS = 30 * 24 * 3_600_000;
const LOOK_EVERY_MS = 25;
const LONGEST_LAG_MS = 30 * 60_000;
/** The largest add-on: loops without a budget do not meet a limit. */
const ADDON_RPM = 100_000;

const stages = new Set<AsyncDisposableStack>();

/** Ends what a bench that failed or was interrupted has left. */
export async function closeStages(): Promise<void> {
  for (const stack of stages) await stack.disposeAsync();
}

/** The databases that a command asks for; `otherwise` if it names none. */
export function askedDatabases(rows: readonly string[], otherwise: readonly DatabaseKind[] = DATABASES) {
  const asked = DATABASES.filter((kind) => rows.includes(kind));
  return asked.length > 0 ? asked : otherwise;
}

/** The first number among the rows that a command asks for. */
export function askedNumber(rows: readonly string[], otherwise: number): number {
  return Number(rows.find((row) => /^\d+$/.test(row)) ?? otherwise);
}

export type Stage = Awaited<ReturnType<typeof openStage>>;

/** Options of the sandbox, and `through`: starts a proxy before its API, and answers the proxy's address. */
type StageOptions = SandboxOptions & {
  kind?: DatabaseKind;
  through?: ((apiUrl: string, stack: AsyncDisposableStack) => Promise<string>) | undefined;
};

/**
 * Starts a sandbox in this process, a Redis, a database and the app. This process installs companies and orders syncs;
 * worker processes do the work. Everything ends with the stage.
 */
export async function openStage({ kind = 'sqlite', through, ...options }: StageOptions) {
  const stack = new AsyncDisposableStack();
  stages.add(stack);
  stack.defer(() => void stages.delete(stack));
  const dir = mkdtempSync(join(tmpdir(), 'partner-app-bench-'));
  stack.defer(() => rmSync(dir, { recursive: true, force: true }));
  const createDatabase = await openDatabases(kind, dir, stack);
  const databaseUrl = await createDatabase();
  const redis = await openRedis({ dir, logger: SILENT });
  stack.defer(() => redis.release());
  const sandbox = await createSandbox(options);
  stack.defer(() => sandbox.close());
  const apiUrl = (await through?.(sandbox.apiUrl, stack)) ?? sandbox.apiUrl;
  const env = {
    SERVICE_API_URL: apiUrl,
    SERVICE_AUTH_URL: sandbox.authUrl,
    CLIENT_ID: sandbox.application.client_id,
    CLIENT_SECRET: sandbox.application.client_secret,
    DATABASE_URL: databaseUrl,
    REDIS_URL: redis.url,
    SESSION_SECRET: randomBytes(32).toString('hex'),
    TOKEN_KEYS: `bench:${randomBytes(32).toString('base64')}`,
  };
  const config = loadConfig(env, { dataDir: dir });
  const cipher = new TokenCipher(config.tokenKeys);
  const app = await createApp(config, redis.url, SILENT, { resources: RESOURCES, appInfo: APP_INFO });
  stack.defer(() => app.close());
  const db = await openDatabase(databaseUrl);
  stack.defer(() => db.destroy());
  const installation = await keepSetting(db, 'installation_id', '');
  const budgetRedis = createRedis(redis.url, 'general', SILENT, { keyPrefix: `${installation}:` });
  stack.defer(() => budgetRedis.disconnect());
  /** Starts a process of the app, and waits for a line of its log. */
  async function start(
    entry: string,
    readyLine: string,
    more: Readonly<Record<string, string>>,
    onLine: (line: string) => void = () => undefined,
  ): Promise<ChildProcess> {
    const { PATH = '', HOME = '' } = process.env;
    const child = spawn(process.execPath, [...PRELOAD, join(ROOT, entry)], {
      cwd: ROOT,
      env: { PATH, HOME, ...env, ...more },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    stack.defer(() => stop(child));
    const output: string[] = [];
    const ready = Promise.withResolvers<ChildProcess>();
    const lines = createInterface(child.stdout);
    lines.on('line', (line) => {
      onLine(line);
      if (output.length < 1_000) output.push(line);
      if (line.includes(readyLine)) ready.resolve(child);
    });
    lines.on('close', () => ready.reject(new Error(`${entry} did not start:\n${output.join('\n')}`)));
    return ready.promise;
  }

  return {
    dir,
    redisUrl: redis.url,
    redis: budgetRedis,
    createDatabase,
    cipher,
    sandbox,
    app,
    db,
    stack,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),

    addCompany: (size: Pick<CompanySpec, 'contacts' | 'conversations' | 'order' | 'addon_rpm'>): Company =>
      sandbox.company({ name: 'Bench', plan: 'enterprise', addon_rpm: ADDON_RPM, ...size }),

    /** Stores a grant as an install does, without a sync. @returns the id of the instance */
    async install(company: Company): Promise<string> {
      const grant = sandbox.tokens(sandbox.application, company);
      const id = `ins_${company.id}`;
      await installInstance(db, { id, company_id: company.id, name: company.name }, Date.now(), {
        ...encryptTokens(cipher, id, grant.access_token, grant.refresh_token),
        access_expires_at: Number(grant.expires_at) * 1_000,
        refresh_due_at: Date.now() + ROTATION_IN_MS,
      });
      const headers = { authorization: `Bearer ${grant.access_token}` };
      const response = await fetch(`${apiUrl}/me`, { headers });
      await response.arrayBuffer();
      // An install knows the limit from this answer.
      const rate = readRateHeaders(Object.fromEntries(response.headers), Date.now());
      if (rate === undefined) throw new Error(`/me answered ${response.status} without a limit.`);
      await new RateBudget(budgetRedis).observe(company.id, rate);
      return id;
    },

    /** Starts `src/worker.ts` as `npm run worker` does, and waits until it takes jobs. */
    startWorker(
      more: Readonly<Record<string, string>> = {},
      onLine?: (line: string) => void,
    ): Promise<ChildProcess> {
      return start('src/worker.ts', WORKER_READY, more, onLine);
    },

    /**
     * Starts a worker without the search index, and with the handler of a file: without one it delivers nothing.
     *
     * @throws Error if the fork's handler is loaded instead
     */
    async startPlainWorker(
      handler = BUSY_HANDLER,
      more: Readonly<Record<string, string>> = {},
    ): Promise<ChildProcess> {
      const taken = join(dir, `handler-${randomBytes(6).toString('hex')}`);
      const worker = await start('test/bench/worker.ts', WORKER_READY, {
        NODE_OPTIONS: `--import ${join(import.meta.dirname, 'handler-hook.js')}`,
        BENCH_HANDLER: handler,
        BENCH_HANDLER_TAKEN: taken,
        BENCH_WORK: 'none',
        ...more,
      });
      if (!existsSync(taken)) throw new Error(`The worker does not have the handler of ${handler}.`);
      return worker;
    },

    /** @throws Error unless exactly these consumers have read something */
    async checkConsumers(names: readonly string[]): Promise<void> {
      const read = db.selectFrom('consumers').select('consumer').distinct().orderBy('consumer');
      const found = (await read.where('cursor', '>', 0).execute()).map(({ consumer }) => consumer);
      if (found.join() !== names.toSorted().join()) {
        throw new Error(
          `The consumers are ${found.join(', ') || 'none'}, not ${names.join(', ') || 'none'}.`,
        );
      }
    },

    start,

    /** Starts the bare loop in a process of its own. It takes one order after the other. */
    startBareLoop(): (order: BareOrder) => Promise<BareDone> {
      const loop = fork(join(import.meta.dirname, 'bare-loop.ts'));
      stack.defer(() => stop(loop));
      return async (order) => {
        loop.send(order);
        return await nextMessage<BareDone>(loop);
      };
    },
  };
}

/** The lists of some companies for the bare loop, which uses the API tokens of the companies. */
export function bareLists(apiUrl: string, companies: readonly Company[], limit = 100): BareOrder['lists'] {
  return ['contacts', 'conversations'].flatMap((resource) =>
    companies.map(({ id, api_tokens }) => ({
      name: `${id} ${resource}`,
      url: `${apiUrl}/${resource}?limit=${limit}`,
      token: api_tokens[0]?.token ?? '',
    })),
  );
}

/** The next message of a child. Rejects if the child ends instead. */
export function nextMessage<T>(child: ChildProcess): Promise<T> {
  return new Promise((resolve, reject) => {
    const ended = (code: number | null) => reject(new Error(`A process of the bench ended with ${code}.`));
    child.once('exit', ended);
    child.once('message', (message) => {
      child.off('exit', ended);
      resolve(message as T);
    });
  });
}

/** Ends a child and waits until it has ended. */
export async function stop(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill(signal);
  await exited;
}

/** The children of a process, as the delivery process of a worker. */
export function childrenOf({ pid }: ChildProcess): { pid: number }[] {
  const threads = readdirSync(`/proc/${pid}/task`);
  return threads.flatMap((thread) => {
    const pids = readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' ');
    return pids.filter(Boolean).map((one) => ({ pid: Number(one) }));
  });
}

/** CPU time of a process with all its threads, in milliseconds. NaN on a machine without `/proc`. */
export function cpuMsOf({ pid }: Pick<ChildProcess, 'pid'>): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    // Linux counts it in hundredths of a second.
    return 10 * (Number(fields[11]) + Number(fields[12]));
  } catch {
    return Number.NaN;
  }
}

/** Resolves when no list, or no list of one instance, has an open run. @throws Error if a run has failed */
export async function awaitRuns(db: Database, instanceId?: string): Promise<void> {
  for (;;) {
    const open = await db
      .selectFrom('runs')
      .innerJoin('lists', 'lists.id', 'runs.list')
      .select(['state', 'error_kind'])
      .where('state', '<>', 'finished')
      .$if(instanceId !== undefined, (query) => query.where('instance_id', '=', instanceId ?? ''))
      .executeTakeFirst();
    if (open === undefined) return;
    if (open.state === 'failed') throw new Error(`A run has failed: ${open.error_kind}.`);
    await sleep(LOOK_EVERY_MS);
  }
}

/** Waits until consumers have read all changes of all lists. @throws Error after half an hour */
export async function awaitConsumers(db: Database, names: readonly string[]): Promise<void> {
  const cursor = (name: string) =>
    sql`coalesce((select cursor from consumers where list = lists.id and consumer = ${name}), 0)`;
  const behind = names.map((name) => sql<boolean>`change_seq > ${cursor(name)}`);
  const lagging = db
    .selectFrom('lists')
    .select('id')
    .where(sql<boolean>`(${sql.join(behind, sql` or `)})`);
  for (const startedAt = performance.now(); (await lagging.executeTakeFirst()) !== undefined; ) {
    if (performance.now() - startedAt > LONGEST_LAG_MS) throw new Error(`${names.join(' or ')} lags behind.`);
    await sleep(LOOK_EVERY_MS);
  }
}

/** @returns makes an empty database and answers its URL */
async function openDatabases(
  kind: DatabaseKind,
  dir: string,
  stack: AsyncDisposableStack,
): Promise<() => Promise<string>> {
  const newName = () => `bench_${randomBytes(6).toString('hex')}`;
  if (kind === 'sqlite') return async () => `file:${join(dir, `${newName()}.db`)}`;
  // Without the statistics of autovacuum, which the tests' server has not, the planner is in the dark.
  const server = await startPostgresServer({ autovacuum: 'on', autovacuum_naptime: '5s' });
  stack.defer(() => server.close());
  return async () => {
    const name = newName();
    await runStatement(server.url, `create database ${name}`);
    return Object.assign(new URL(server.url), { pathname: `/${name}` }).href;
  };
}
