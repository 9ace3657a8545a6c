import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createQueues, type Queues } from '../jobs/queues.ts';
import { startWorkers, type Workers } from '../jobs/workers.ts';
import { Installs } from './auth/install.ts';
import { OAuthClient } from './auth/oauth-client.ts';
import { TokenCipher } from './auth/token-cipher.ts';
import { Tokens } from './auth/tokens.ts';
import type { EventSender } from './changes/app-events.ts';
import type { ChangeHandler } from './changes/change-handler.ts';
import { feedLines } from './changes/delivery.ts';
import { HANDLER_CONSUMER, handlerConsumer } from './changes/handler-consumer.ts';
import { searchConsumer } from './changes/search-consumer.ts';
import type { Config } from './config/config.ts';
import { CALLBACK_PATH } from './contract/routes.ts';
import { APP_INFO } from './integration/app-info.ts';
import { RESOURCES } from './integration/resources.ts';
import { checkReadiness } from './runtime/health.ts';
import type { Logger } from './runtime/logging.ts';
import { createMetrics } from './runtime/metrics.ts';
import { type ProcessFacts, processFacts } from './runtime/process-facts.ts';
import { redact } from './runtime/redaction.ts';
import { checkRedis, createRedis } from './runtime/redis.ts';
import { LEFT_TO_SYNC, RateBudget } from './service/budget.ts';
import { ServiceClock } from './service/headers.ts';
import { HttpClient } from './service/http.ts';
import { AllowedOrigins } from './service/next-url.ts';
import { ServiceApi } from './service/service-api.ts';
import { type ClientFor, createServiceClient } from './service/service-client.ts';
import { SchemaError } from './store/migrate.ts';
import { openDatabase } from './store/open-database.ts';
import { PageStore } from './store/pages.ts';
import { SEARCH_CONSUMER } from './store/records.ts';
import type { ListKey } from './store/runs.ts';
import { keepSetting } from './store/settings.ts';
import { openStores } from './store/stores.ts';
import { SyncControl } from './sync/control.ts';
import { collectFigures } from './sync/metric-figures.ts';
import type { SyncParts } from './sync/parts.ts';
import { checkResources } from './sync/resource.ts';
import { type StatusQuery, StatusReader } from './sync/status.ts';
import { watchApp } from './sync/watch-app.ts';
import type { TakenPort } from './web/listen.ts';

/** How often the web process asks for the service's time, in milliseconds. */
const ASK_TIME_EVERY_MS = 30_000;

/** How long a shutdown waits for installs, in milliseconds. */
const INSTALL_ENDING_MS = 6_000;

/** The app of one process: who gets what. */
export interface App {
  tokens: Tokens;
  clock: ServiceClock;
  control: SyncControl;
  queues: Queues;
  startWeb(at: TakenPort): Promise<void>;
  startWorkers(): Workers;
  /** Serves health checks and metrics in a process without the web app. */
  startHealth(at: TakenPort): Promise<void>;
  /** Stops requests for tokens, before anything is closed. */
  end(): void;
  /** Closes the connections. Close web and workers first. */
  close(): Promise<void>;
}

/**
 * Creates the app of this process, and runs none of it yet. In development it migrates the database.
 *
 * @param redisUrl all processes share this Redis
 * @param options.handler the integrator's handler
 * @param options.events sends events to the integrator's event handler
 * @param options.facts the process, as its log names it
 * @throws Error when a resource is invalid, the database does not open or has another schema, or a token key is wrong
 */
export async function createApp(
  config: Config,
  redisUrl: string,
  logger: Logger,
  options: { handler?: ChangeHandler | undefined; events?: EventSender; facts?: ProcessFacts } = {},
): Promise<App> {
  const { handler, events, facts = processFacts() } = options;
  checkResources(RESOURCES);
  const cipher = new TokenCipher(config.tokenKeys);
  const db = await openDatabase(config.databaseUrl, {
    migrates: !config.production,
    onError: (err) => logger.warn({ err }, 'a connection to the database broke'),
  }).catch((error) => {
    const isOfDevelopment = !config.production && config.databaseUrl.startsWith(`file:${config.dataDir}/`);
    if (isOfDevelopment && error instanceof SchemaError) {
      error.message += ` In development you can delete ${config.dataDir} instead: all of it is made anew.`;
    }
    throw error;
  });
  const stores = openStores(db);
  const onEvent = events?.sendFor(stores.instances);
  const keep = (name: string, value: string) => keepSetting(db, name, value);
  const installation = await cipher
    .proveKeys(keep)
    .then(() => keep('installation_id', randomBytes(6).toString('hex')))
    .catch(async (error) => {
      await db.destroy();
      throw error;
    });
  const redis = createRedis(redisUrl, 'general', logger, { keyPrefix: `${installation}:` });
  // BullMQ adds a prefix itself.
  const queueRedis = createRedis(redisUrl, 'general', logger);
  const queues = createQueues(queueRedis, installation, logger);
  const isRedisWell = () => checkRedis(redis);
  const watch = watchApp({ store: () => db.check(), redis: isRedisWell }, queues.workers, logger);
  const http = new HttpClient(config.outbound);
  const clock = new ServiceClock();
  let workers: Workers | undefined;
  const metrics = createMetrics(
    RESOURCES.map(({ route }) => route),
    {
      store: () => collectFigures({ db, clock, resources: RESOURCES, consumers }),
      jobs: queues.syncCounts,
      sweepLateMs: () => workers?.sweepLateMs() ?? 0,
      workers: () => watch.workers,
      isReady: () => readiness().then(({ ok }) => ok),
    },
  );
  const budget = new RateBudget(redis);
  const callBudget = new RateBudget(redis, { leftToSync: LEFT_TO_SYNC });

  const { apiUrl, nextOrigins, guards } = config.service;
  const origins = new AllowedOrigins(apiUrl, nextOrigins);
  const api = new ServiceApi({ apiUrl, http, clock, budget, origins, onOutcome: metrics.onServiceOutcome });
  const redirectUri = config.publicUrl + CALLBACK_PATH;
  const oauth = new OAuthClient({ ...config.service, redirectUri, clock, outbound: config.outbound });
  const tokens = new Tokens({
    oauth,
    store: stores.tokens,
    cipher,
    clock,
    onRefresh: ({ instanceId, outcome, error }) => {
      metrics.tokenRefreshes.inc({ outcome });
      if (outcome === 'rejected') {
        logger.warn({ instanceId, err: error }, 'the instance needs a new authorization');
        const reason = error instanceof Error ? error.message : String(error);
        onEvent?.(instanceId, { type: 'authorization_ended', error: redact(reason) });
      }
      if (outcome === 'lost')
        logger.error({ instanceId, err: error }, 'refreshed tokens could not be stored');
    },
  });
  const ignore = () => undefined;
  const shared = { ...stores, resources: RESOURCES, intervalMs: config.syncIntervalMs };
  const hasHandler = handler !== undefined;
  const status = new StatusReader({ ...shared, budget, clock, watch, hasHandler });
  const control = new SyncControl({
    ...shared,
    watch,
    onDisconnect: (instanceId, dataDeleted) => {
      logger.info({ instanceId, dataDeleted }, 'the instance is disconnected');
      onEvent?.(instanceId, { type: 'disconnected', dataDeleted });
    },
    status,
    // Buttons work without Redis: the next sweep enqueues what is missing.
    enqueueRuns: (runs) => queues.enqueueRuns(runs, { now: true }).catch(ignore),
    enqueueDeliveries: async (lists) => {
      if (hasHandler) await queues.enqueueDeliveries(lists, { now: true }).catch(ignore);
    },
  });
  const consumers = [searchConsumer(db)];
  if (handler !== undefined) {
    const { changes } = stores;
    const timeoutMs = config.handlerTimeoutMs;
    const serviceFor = (client: ClientFor) =>
      createServiceClient({ api, budget: callBudget, tokens, guards }, client);
    consumers.push(handlerConsumer({ handler, timeoutMs, changes, db, serviceFor }));
  }
  const sync: SyncParts = {
    ...shared,
    api,
    tokens,
    pages: new PageStore(db),
    onEvent,
    onChanges: (list: ListKey, isOver: boolean) => {
      // Search is indexed at the end of a run, when no page needs the CPU.
      const names = [...(isOver ? [SEARCH_CONSUMER] : []), ...(hasHandler ? [HANDLER_CONSUMER] : [])];
      queues.enqueueDeliveries(names.map((consumer) => ({ ...list, consumer }))).catch(ignore);
    },
    onSlot: ({ waitMs }) => metrics.slotWaitSeconds.observe(waitMs / 1_000),
    onPage: ({ resource }) => metrics.pages.inc({ resource }),
    onRunEnd: ({ resource, outcome }) => metrics.runs.inc({ resource, outcome }),
  };
  const installs = new Installs({
    oauth,
    api,
    cipher,
    store: stores.installs,
    // An install succeeds without Redis: the next sweep starts the sync.
    onInstalled: (instanceId) =>
      control
        .syncNow(instanceId)
        .catch((error) => logger.warn({ instanceId, err: error }, 'sync not started')),
  });
  async function* feed(instanceId: string, resource: string, range: { after: number; limit: number }) {
    const list = (await stores.runs.lists(instanceId)).find((one) => one.resource === resource);
    if (list !== undefined) yield* feedLines(stores.changes, list.id, range);
  }
  const overview = async (query: StatusQuery) => ({
    ...(await status.readPage(query)),
    queues: await queues.counts(),
    workers: await queues.workers(),
  });

  const readiness = () => checkReadiness({ database: () => db.check(), redis: isRedisWell });
  const health = { readiness, metrics: metrics.scrape };

  return {
    tokens,
    clock,
    control,
    queues,
    // Without the web app's modules, a worker starts 25 % faster and needs 20 MB less.
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
            appInfo: APP_INFO,
            isSandbox: config.service.isSandbox,
            ...(config.service.isSandbox ? { sandboxUrl: new URL(config.service.apiUrl).origin } : {}),
            redis,
            browsers: stores.browsers,
            installs,
            control,
            records: stores.records,
            actions: stores.actions,
            changes: { feed },
            resources: RESOURCES,
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
      const { createHealthApp } = await import('./web/routes/health.ts');
      at.serve((shutdown) => createHealthApp({ ...health, shutdown }));
    },
    startWorkers() {
      workers = startWorkers({
        redis: createRedis(redisUrl, 'worker', logger),
        process: facts,
        queues,
        sync,
        stores,
        keepDeletedMs: config.keepDeletedMs,
        consumers,
        logger,
        onFirstSlot: ({ waitMs }) => metrics.jobWaitSeconds.observe(waitMs / 1_000),
      });
      return workers;
    },
    end: () => tokens.end(),
    async close() {
      try {
        await tokens.close();
      } finally {
        watch.close();
        await queues.close();
        await http.close();
        redis.disconnect();
        queueRedis.disconnect();
        await db.destroy();
      }
    },
  };
}
