import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createQueues, type Queues } from '../jobs/queues.ts';
import { startWorkers, type Workers } from '../jobs/workers.ts';
import { Installs } from './auth/install.ts';
import { OAuthClient } from './auth/oauth-client.ts';
import { TokenCipher } from './auth/token-cipher.ts';
import { Tokens } from './auth/tokens.ts';
import { AnswerMemory } from './client/answer-memory.ts';
import { openBudgets } from './client/budget/process-budgets.ts';
import { createServiceClient } from './client/calls/service-client.ts';
import { HttpClient, REQUEST_TIMEOUT_MS } from './client/http.ts';
import { AllowedOrigins } from './client/next-address.ts';
import { ServiceApi } from './client/service-api.ts';
import { ServiceClock } from './client/service-clock.ts';
import { Transport } from './client/transport.ts';
import { configuredSecrets } from './config/configured-secrets.ts';
import type { Config } from './config.ts';
import { CALLBACK_PATH } from './contract/routes.ts';
import { checkReadiness } from './runtime/health.ts';
import { watchWorkers } from './runtime/living-workers.ts';
import { givesSecretAway, hideSecrets, type Logger, rememberSecret } from './runtime/logging.ts';
import { countRequests } from './runtime/metrics/count-requests.ts';
import { createMetrics } from './runtime/metrics.ts';
import { Presence } from './runtime/presence.ts';
import { checkRedis, createRedis, tellThatNothingIsMigrated } from './runtime/redis.ts';
import { SharedRedis } from './runtime/shared-redis.ts';
import { DeletionStore } from './store/deletions.ts';
import { dirBeside, pathOf } from './store/existing-file.ts';
import { InDoubtStore } from './store/in-doubt.ts';
import { NewerSchemaError } from './store/newer-schema.ts';
import { openDatabase } from './store/open-database.ts';
import { PageStore } from './store/pages.ts';
import { keepSetting } from './store/settings.ts';
import { openStores } from './store/stores.ts';
import { abandonPermits } from './sync/abandoned-permits.ts';
import { checkResources } from './sync/check-resources.ts';
import { SyncControl } from './sync/control.ts';
import { collectFigures } from './sync/figures.ts';
import { findOvercome } from './sync/overcome.ts';
import type { OwnLogic } from './sync/own-logic.ts';
import { RESOURCES } from './sync/resources.ts';
import type { SyncParts } from './sync/slice-parts.ts';
import { StatusReader } from './sync/status.ts';
import { watchApp } from './sync/watch-app.ts';
import type { TakenPort } from './web/listen.ts';

/** How often the web process, which may have nothing else to ask, asks for the service's time, in milliseconds. */
const ASK_TIME_EVERY_MS = 30_000;

/** How long installs are waited for when the process ends, in milliseconds. */
const INSTALL_ENDING_MS = 6_000;

/** The app of one process: who gets what. */
export interface App {
  tokens: Tokens;
  clock: ServiceClock;
  control: SyncControl;
  queues: Queues;
  startWeb(at: TakenPort): Promise<void>;
  startWorkers(): Workers;
  /** What machines ask, for a process without the web app. */
  startHealth(at: TakenPort): Promise<void>;
  /** Shows the other processes on the Redis which database this one works with; throws when another works with another. */
  enterRedis(): Promise<void>;
  /** Tells once when a newer version of the app has migrated the database: this process has to end then. */
  onNewerSchema(listener: (error: Error) => void): void;
  /** Begins the end: no grant is asked for any more. */
  end(): void;
  /** Closes what all parts share; the parts are closed before. */
  close(): Promise<void>;
}

/**
 * Puts the app of this process together; nothing runs yet. It migrates the database of an older version, which ends the
 * processes of that one: whatever may keep this one from working is looked at before, here or by the caller.
 *
 * @param redisUrl of the Redis that all processes share
 * @param options.ownLogic the integrator's function; without it, nothing is told
 * @throws when a resource cannot be synced as it is described, the database cannot be opened, a key is not the one that
 *   its tokens are under, or it is to be migrated and Redis is away
 */
export async function createApp(
  config: Config,
  redisUrl: string,
  logger: Logger,
  options: { ownLogic?: OwnLogic | undefined } = {},
): Promise<App> {
  checkResources(RESOURCES);
  for (const secret of configuredSecrets(config, redisUrl)) rememberSecret(secret, { forGood: true });
  const redis = createRedis(redisUrl, 'general', logger);
  const processId = randomUUID();
  const processes = () => new Presence(dirBeside(config.databaseUrl, 'processes'), processId);
  const sharedRedis = new SharedRedis(redis, { path: pathOf(config.databaseUrl), processes, logger });
  const queues = createQueues(redis, logger);
  const isRedisWell = () =>
    checkRedis(redis, { isPrivate: config.redisUrl === undefined }).then(() => queues.check());
  const cipher = new TokenCipher(config.tokenKeys, rememberSecret);
  const db = await openDatabase(config.databaseUrl, {
    onWait: (waitedMs) => logger.warn({ waitedMs }, 'another process changes the database: waiting for it'),
    onNew: () => logger.info({ path: pathOf(config.databaseUrl) }, 'a new database was made'),
    beforeMigration: () =>
      isRedisWell()
        .catch(tellThatNothingIsMigrated)
        .then(() => sharedRedis.checkAlone()),
  }).catch((error) => {
    redis.disconnect();
    const isOfDevelopment = !config.production && config.databaseUrl.startsWith(`file:${config.dataDir}/`);
    if (isOfDevelopment && error instanceof NewerSchemaError) {
      error.message += ` In development you can delete ${config.dataDir} instead: all of it is made anew.`;
    }
    throw error;
  });
  const stores = openStores(db);
  await cipher
    .proveKeys((name, value) => keepSetting(db, name, value))
    .catch(async (error) => {
      redis.disconnect();
      await db.destroy();
      throw error;
    });
  const watch = watchApp({ database: () => db.check(), redis: isRedisWell }, logger);
  const memory = new AnswerMemory();
  const http = new HttpClient(REQUEST_TIMEOUT_MS, memory, config.wayOut);
  const clock = new ServiceClock();
  let workers: Workers | undefined;
  const workersWatch = watchWorkers(dirBeside(config.databaseUrl, 'workers'));
  const metrics = createMetrics(
    RESOURCES.map(({ route }) => route),
    {
      store: () => collectFigures({ db, clock, resources: RESOURCES }),
      jobs: queues.syncCounts,
      upkeepLateMs: async () => workers?.schedulesLateMs() || queues.upkeepLateMs(),
      workers: workersWatch.count,
      answers: () => memory.bytes,
      unusableConnections: () => workers?.unusableConnections() ?? 0,
      isReady: () => health.readiness().then(({ ok }) => ok),
    },
  );
  const { budget, callBudget } = openBudgets(redis, processId);

  const transport = new Transport({ http, clock, budget, ...countRequests(metrics) });
  const { apiUrl, nextOrigins, guards } = config.service;
  const origins = new AllowedOrigins(apiUrl, nextOrigins);
  const api = new ServiceApi({ apiUrl, transport, clock, budget, origins, givesSecretAway });
  const redirectUri = config.publicUrl + CALLBACK_PATH;
  const oauth = new OAuthClient({
    ...config.service,
    redirectUri,
    clock,
    wayOut: config.wayOut,
    onSecret: rememberSecret,
  });
  const tokens = new Tokens({
    oauth,
    store: stores.tokens,
    cipher,
    clock,
    onRefresh: ({ instanceId, outcome, error }) => {
      metrics.tokenRefreshes.inc({ outcome });
      if (outcome === 'rejected') logger.warn({ instanceId }, 'the instance needs a new authorization');
      if (outcome === 'lost')
        logger.error({ instanceId, err: error }, 'refreshed tokens could not be stored');
    },
  });
  const shared = { ...stores, resources: RESOURCES, intervalMs: config.syncIntervalMs };
  const status = new StatusReader({ ...shared, budget, clock, workers: workersWatch });
  const control = new SyncControl({
    ...shared,
    watch,
    status,
    enqueue: (runs) => queues.enqueue(runs, { hurry: true }),
  });
  const sync: SyncParts = {
    ...shared,
    api,
    tokens,
    pages: new PageStore(db, hideSecrets),
    deletions: new DeletionStore(db),
    inDoubt: new InDoubtStore(db),
    ownLogic: options.ownLogic,
    ownLogicTimeoutMs: config.ownLogicTimeoutMs,
    hideSecrets,
    serviceFor: (whose) =>
      createServiceClient({ apiUrl, transport, budget: callBudget, tokens, origins, guards }, whose),
    onSlot: ({ waitMs }) => metrics.slotWaitSeconds.observe(waitMs / 1_000),
    onPage: ({ resource, records }) => {
      metrics.pages.inc({ resource });
      metrics.records.inc({ resource }, records);
    },
    onRunEnd: ({ resource, outcome }) => metrics.runs.inc({ resource, outcome }),
  };
  const installs = new Installs({
    oauth,
    api,
    cipher,
    store: stores.installs,
    hideSecrets,
    // The install stands even if Redis is away just now: the next sweep starts what could not be started here.
    onInstalled: (instanceId) =>
      control
        .syncNow(instanceId)
        .catch((error) => logger.warn({ instanceId, err: error }, 'sync not started')),
  });
  const overview = async (page: number) => ({
    ...(await status.readPage(page)),
    queues: await queues.counts(),
    workers: workersWatch.count(),
  });

  const health = {
    readiness: () =>
      checkReadiness({
        database: () => db.check(),
        redis: isRedisWell,
        ...workers?.checks,
      }),
    metrics: metrics.scrape,
  };

  const endWatches: (() => void)[] = [];
  return {
    tokens,
    clock,
    control,
    queues,
    // A worker starts a quarter sooner, and is 20 MB smaller, without the web app's modules.
    startWeb: async (at) => {
      const { createWebApp } = await import('./web/web-app.ts');
      at.serve(
        (shutdown) => {
          const asking = setInterval(() => oauth.askTime(), ASK_TIME_EVERY_MS).unref();
          shutdown.addEventListener('abort', () => clearInterval(asking));
          return createWebApp({
            publicUrl: config.publicUrl,
            proxyHops: config.proxyHops,
            sessionSecret: config.sessionSecret,
            production: config.production,
            isSandbox: config.service.isSandbox,
            ...(config.service.isSandbox ? { sandboxUrl: new URL(config.service.apiUrl).origin } : {}),
            redis,
            browsers: stores.browsers,
            installs,
            control,
            records: stores.records,
            resources: [...RESOURCES],
            ...health,
            onRequest: ({ method, route, status, durationMs }) =>
              metrics.httpRequestSeconds.observe({ method, route, status }, durationMs / 1_000),
            ...(config.operatorPassword === undefined
              ? {}
              : { operations: { password: config.operatorPassword, overview } }),
            logger,
            shutdown,
          });
        },
        () => Promise.race([installs.settled(), sleep(INSTALL_ENDING_MS, undefined, { ref: false })]),
      );
    },
    startHealth: async (at) => {
      const { createHealthApp } = await import('./web/health-app.ts');
      at.serve((shutdown) => createHealthApp({ ...health, shutdown }));
    },
    startWorkers() {
      workers = startWorkers({
        connect: (log, name) => createRedis(redisUrl, 'worker', log, name),
        queues,
        sync,
        onFirstTurn: ({ waitMs }) => metrics.jobWaitSeconds.observe(waitMs / 1_000),
        browsers: stores.browsers,
        schedule: {
          ...shared,
          overcome: findOvercome({ db, checkRedis: isRedisWell, keyIds: cipher.keyIds, hideSecrets }),
        },
        index: { databaseUrl: config.databaseUrl },
        takeOver: {
          processes: new Presence(dirBeside(config.databaseUrl, 'workers'), processId),
          redis,
          onAbandoned: abandonPermits({ instances: stores.instances, budget }),
        },
        memory,
        logger,
      });
      return workers;
    },
    enterRedis: () => sharedRedis.enter(),
    onNewerSchema(listener) {
      endWatches.push(db.watchSchema(listener));
    },
    end() {
      tokens.end();
    },
    async close() {
      for (const end of endWatches) end();
      try {
        await tokens.close();
      } finally {
        watch.close();
        workersWatch.close();
        metrics.close();
        await queues.close();
        await sharedRedis.leave();
        await http.close();
        redis.disconnect();
        await stores.records.close();
        await db.destroy();
      }
    },
  };
}
