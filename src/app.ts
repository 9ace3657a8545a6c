import { setTimeout as sleep } from 'node:timers/promises';
import { createQueues } from '../jobs/queues.ts';
import { startWorkers, type Workers } from '../jobs/workers.ts';
import { Installs } from './auth/install.ts';
import type { EventSender } from './changes/app-events.ts';
import type { ChangeHandler } from './changes/change-handler.ts';
import { deliveriesHere, feedLines } from './changes/delivery.ts';
import { DeliveryProcess } from './changes/delivery-process.ts';
import { HANDLER } from './changes/handler-consumer.ts';
import { SEARCH } from './changes/search-consumer.ts';
import type { Config } from './config/config.ts';
import { openCore } from './core.ts';
import type { Settings } from './integration/types.ts';
import type { CompanyFinder } from './runtime/company-finder.ts';
import type { Logger } from './runtime/logging.ts';
import { createMetrics } from './runtime/metrics.ts';
import { type ProcessFacts, processFacts } from './runtime/process-facts.ts';
import { checkReadiness } from './runtime/readiness.ts';
import { checkRedis, createRedis } from './runtime/redis.ts';
import { readFigures } from './store/figures.ts';
import type { ListKey } from './store/runs.ts';
import { SyncControl } from './sync/control.ts';
import type { SyncParts } from './sync/parts.ts';
import { checkResources, type Resource } from './sync/resource.ts';
import { type StatusQuery, StatusReader } from './sync/status.ts';
import { watchApp } from './sync/watch-app.ts';
import type { TakenPort } from './web/listen.ts';
import type { AppInfo } from './web/web-dependencies.ts';

/** How often the web process asks for the service's time, in milliseconds. */
const ASK_TIME_EVERY_MS = 30_000;

/** How long a shutdown waits for installs, in milliseconds. */
const INSTALL_ENDING_MS = 6_000;

/** The app of one process: who gets what. */
export type App = Awaited<ReturnType<typeof createApp>>;

/** The fork's parts, from `src/integration`. */
export interface Fork {
  /** Only for deliveries that run in this process. */
  handler?: ChangeHandler | undefined;
  settings?: Settings;
  /** Whether the delivery process will find a handler. */
  hasHandler?: boolean;
  /** Sends events to the fork's event handler. */
  events?: EventSender;
  /** Whether the copy gets a search index. Benches leave it out. */
  hasSearch?: boolean;
  resources: readonly Resource[];
  appInfo: AppInfo;
  /** The folder of pages and assets that win over the app's. */
  ownViews?: string;
}

/**
 * Creates the app of this process, and runs none of it yet. In development it migrates the database.
 *
 * @param redisUrl all processes share this Redis
 * @param options.facts the process, as its log names it
 * @param options.deliveries where a worker's deliveries run: in a child process, or `here`, for tests that hand over
 *   their handler as a function
 * @param options.companies names companies in the log from now on
 * @param options.onLost the process must end: its database is not the one at DATABASE_URL any more
 * @throws Error when a resource is invalid, the database does not open or has another schema, or a token key is wrong
 */
export async function createApp(
  config: Config,
  redisUrl: string,
  logger: Logger,
  {
    handler,
    settings,
    hasHandler = handler !== undefined,
    events,
    hasSearch = true,
    resources,
    appInfo,
    ownViews,
  }: Fork,
  options: {
    facts?: ProcessFacts;
    deliveries?: 'child' | 'here';
    onLost?: (reason: string) => void;
    companies?: CompanyFinder;
  } = {},
) {
  const { facts = processFacts(), deliveries = 'child', onLost = () => undefined, companies } = options;
  checkResources(resources);
  let workers: Workers | undefined;
  const metrics = createMetrics(
    resources.map(({ route }) => route),
    {
      store: () => readFigures(db, { resources, consumers }, clock.now()),
      jobs: () => queues.syncCounts(),
      sweepLateMs: () => workers?.sweepLateMs() ?? 0,
      workers: () => watch.workers,
      isReady: () => readiness().then(({ ok }) => ok),
    },
    facts.version,
  );
  const { name: appName } = appInfo;
  const core = await openCore(config, redisUrl, logger, { events, counts: metrics, companies, appName });
  const { db, stores, installation, redis, budget, clock, api, oauth, tokens, cipher, onEvent } = core;
  // BullMQ adds a prefix itself.
  const queueRedis = createRedis(redisUrl, 'general', logger);
  const queues = createQueues(queueRedis, installation, logger);
  const isRedisWell = () => checkRedis(redis);
  const checks = { store: core.checkDatabase, redis: isRedisWell };
  const watch = watchApp(checks, queues.workers, logger, ({ message }) => onLost(message));
  const ignore = () => undefined;
  const { syncIntervalMs: intervalMs, checkIntervalMs } = config;
  const shared = { ...stores, resources, intervalMs, checkIntervalMs };
  const status = new StatusReader({ ...shared, budget, clock, watch, hasHandler });
  const control = new SyncControl({
    ...shared,
    onDisconnect: (instanceId, facts) => {
      logger.info({ instanceId, ...facts }, 'the instance is disconnected');
      onEvent?.(instanceId, { type: 'disconnected', ...facts });
    },
    // Buttons work without Redis: the next sweep enqueues what is missing.
    enqueueLists: (jobs) => queues.enqueueLists(jobs, { now: true }).catch(ignore),
    enqueueDeliveries: async (lists) => {
      if (!hasHandler) return;
      await queues
        .enqueueDeliveries(lists)
        .then(() => queues.startDelayed(lists))
        .catch(ignore);
    },
  });
  const consumers = [...(hasSearch ? [SEARCH] : []), ...(hasHandler ? [HANDLER] : [])];
  const sync: SyncParts = {
    ...shared,
    api,
    tokens,
    onEvent,
    onChanges: (list: ListKey, isOver: boolean) => {
      // The search index waits for the end of a time slice, when no page needs the CPU.
      const told = consumers.filter((consumer) => isOver || consumer !== SEARCH);
      queues.enqueueDeliveries(told.map(({ name }) => ({ ...list, consumer: name }))).catch(ignore);
    },
    onSlot: ({ waitMs }) => metrics.slotWaitSeconds.observe(waitMs / 1_000),
    limitOf: (company) => budget.read(company).then(({ limit }) => limit, ignore),
    onCheck: ({ outcome }) => metrics.checks.inc({ outcome }),
    onPage: ({ resource }) => metrics.pages.inc({ resource }),
    onRunEnd: ({ resource, outcome }) => metrics.runs.inc({ resource, outcome }),
  };
  const installs = new Installs({
    oauth,
    api,
    cipher,
    store: stores.installs,
    resources: resources.map(({ name }) => name),
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
    workers: await queues.heartbeats(),
  });

  const readiness = () => checkReadiness({ database: core.checkDatabase, redis: isRedisWell });
  const health = { readiness, metrics: metrics.scrape };

  return {
    tokens,
    clock,
    control,
    status,
    queues,
    // Without the web app's modules, a worker starts 25 % faster and needs 20 MB less.
    startWeb: async (at: TakenPort): Promise<void> => {
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
            appInfo,
            ownViews,
            isSandbox: config.service.isSandbox,
            ...(config.service.isSandbox ? { sandboxUrl: new URL(config.service.apiUrl).origin } : {}),
            redis,
            browsers: stores.browsers,
            installs,
            control,
            status,
            instances: stores.instances,
            records: stores.records,
            actions: stores.actions,
            changes: { feed },
            resources,
            ...health,
            onRequest: ({ method, route, status, durationMs }) =>
              metrics.httpRequestSeconds.observe({ method, route, status }, durationMs / 1_000),
            ...(config.operatorPassword === undefined
              ? {}
              : {
                  operations: {
                    password: config.operatorPassword,
                    overview,
                    troubles: (id: string) => status.readTroubles(id),
                  },
                }),
            logger,
            shutdown,
          });
        },
        () => Promise.race([installs.settled(), sleep(INSTALL_ENDING_MS, undefined, { ref: false })]),
      );
    },
    /** Serves health checks and metrics in a process without the web app. */
    startHealth: async (at: TakenPort): Promise<void> => {
      const { createHealthApp } = await import('./web/routes/health.ts');
      at.serve((shutdown) => createHealthApp({ ...health, shutdown }));
    },
    startWorkers(): Workers {
      const { handlerRetryMs: retryMs } = config;
      const delivering =
        deliveries === 'here'
          ? deliveriesHere(stores.changes, core.consumers(handler, settings), { logger, retryMs, onEvent })
          : new DeliveryProcess({
              entry: new URL('./deliver.ts', import.meta.url),
              start: { config, redisUrl, hasHandler, appName },
              memoryMb: config.handlerMemoryMb,
              timeoutMs: config.handlerTimeoutMs,
              changes: stores.changes,
              logger,
              onEvent: (event) => events?.send(event),
              onCount: (name, value) => metrics[name](value as never),
            });
      workers = startWorkers({
        redis: createRedis(redisUrl, 'worker', logger),
        process: facts,
        queues,
        sync,
        dueLists: core.dueLists,
        stores,
        keepDeletedMs: config.keepDeletedMs,
        consumers,
        deliveries: delivering,
        sender: {
          ...core.clientParts,
          failures: new Map(),
          outbox: stores.outbox,
          instances: stores.instances,
          onEvent,
          onWrite: (write) => metrics.writes.inc(write),
        },
        logger,
        onFirstSlot: ({ waitMs }) => metrics.jobWaitSeconds.observe(waitMs / 1_000),
      });
      return workers;
    },
    /** Stops requests for tokens, before anything is closed. */
    end: () => tokens.end(),
    /** Closes the connections. Close web and workers first. */
    async close() {
      watch.close();
      await queues.close();
      queueRedis.disconnect();
      await core.close();
    },
  };
}
