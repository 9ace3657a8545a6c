import { Worker } from 'node:worker_threads';
import { type AppEvent, EventSender } from './changes/app-events.ts';
import { deliverList } from './changes/delivery.ts';
import {
  type CountName,
  type FromDeliveryProcess,
  HEARTBEAT_MS,
  type ToDeliveryProcess,
} from './changes/delivery-process.ts';
import { TRANSACTION_MS, takeRejection } from './changes/handler-consumer.ts';
import type { Config } from './config/config.ts';
import { NO_SETTINGS, readSettings } from './config/fork-settings.ts';
import { ConfigError } from './config/variables.ts';
import { openCore } from './core.ts';
import { loadHandler } from './fork.ts';
import { CompanyFinder } from './runtime/company-finder.ts';
import { createLogger } from './runtime/logging.ts';
import { processFacts } from './runtime/process-facts.ts';
import type { WatchedProcess } from './runtime/watch-process.ts';
import type { FeedEntry, HeldConsumer } from './store/changes.ts';

// The delivery process: a child of a worker, in which the fork's handler runs. See DeliveryProcess.

/** What the worker hands over. */
interface DeliveryStart {
  config: Config;
  redisUrl: string;
  /** Without it the modules of handler and settings are not loaded. */
  hasHandler: boolean;
  /** As openCore takes it. */
  appName: string;
}

/** Memory beyond the heap before the process counts as full: a third of the heap, or this many megabytes. */
const MORE_MEMORY_MB = 128;
const MEGABYTE = 1024 * 1024;

/** How long the function of a handler may compute beyond its time, in milliseconds. */
const MORE_IN_TRANSACTION_MS = 2_000;

/** A statement may take as long as a call, but at least so long, in milliseconds. */
const LEAST_STATEMENT_MS = 10_000;

/** How long the last word may take, in milliseconds. */
const LAST_WORD_MS = 1_000;

function send(message: FromDeliveryProcess, sent = () => {}): void {
  if (process.connected) process.send?.(message, undefined, undefined, sent);
  else sent();
}

function end(error: unknown): void {
  setTimeout(() => process.exit(1), LAST_WORD_MS);
  const reason = error instanceof Error ? error.message : String(error);
  send({ type: 'fatal', reason }, () => process.exit(1));
}

// The worker ends this process.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => {});
process.on('uncaughtException', ({ message }) => end(`uncaught exception: ${message}`));

const started = Promise.withResolvers<DeliveryStart>();
const stopping = new AbortController();
const underWay = new Set<Promise<void>>();
let close = async () => {};

process.on('message', (message: ToDeliveryProcess) => {
  if (message.type === 'start') started.resolve(message.start as DeliveryStart);
  if (message.type === 'stop') void stop();
  if (message.type !== 'deliver') return;
  const work = deliverOne(message).finally(() => underWay.delete(work));
  underWay.add(work);
});
send({ type: 'loaded' });
const { config, redisUrl, hasHandler, appName } = await started.promise;

const mostMb = Math.max((config.handlerMemoryMb * 4) / 3, config.handlerMemoryMb + MORE_MEMORY_MB);
const watched: WatchedProcess = {
  parent: Number(process.argv[2]),
  mostBytes: mostMb * MEGABYTE,
  transaction: new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)),
  mostInTransactionMs: TRANSACTION_MS + MORE_IN_TRANSACTION_MS,
};
new Worker(new URL('./runtime/watch-process.ts', import.meta.url), { workerData: watched, execArgv: [] });
setInterval(() => send({ type: 'alive' }), HEARTBEAT_MS);

// The environment is the worker's, which has found no problem with it.
const { settings, problems } = hasHandler
  ? await readSettings(() => import('./integration/settings.ts'))
  : NO_SETTINGS;
if (problems.length > 0) await failed(new ConfigError(problems));

const tell = (event: AppEvent) => send({ type: 'event', event });
const companies = new CompanyFinder();
const logger = createLogger(config, {
  companies,
  facts: processFacts(),
  onError: ({ name, message: words, stack }, { message }) => {
    // Whatever else the error holds may not be for sending.
    tell({ type: 'error', error: Object.assign(new Error(words), { name, stack }), message });
  },
});
process.on('unhandledRejection', (error) => {
  if (takeRejection(error)) return;
  logger.error({ err: error }, 'a promise rejected outside the calls of the handler');
});

const events = new EventSender(logger);
events.handler = tell;
const count = (name: CountName) => (value: unknown) => send({ type: 'count', name, value });
const counts = { onServiceOutcome: count('onServiceOutcome'), onTokenRefresh: count('onTokenRefresh') };
const loading = hasHandler ? loadHandler(() => import('./integration/handler.ts')) : undefined;
const handler = await loading?.catch(failed);
const statementsMs = Math.max(config.handlerTimeoutMs, LEAST_STATEMENT_MS);
const core = await openCore(config, redisUrl, logger, {
  events,
  counts,
  statementsMs,
  companies,
  appName,
}).catch(failed);
close = core.close;
const onTransaction = (isUnderWay: boolean) => {
  // In seconds, which fit into 32 bits.
  Atomics.store(watched.transaction, 0, isUnderWay ? Math.ceil(performance.now() / 1_000) : 0);
};
const consumers = core.consumers(handler, settings, onTransaction);
send({ type: 'ready' });

async function failed(error: unknown): Promise<never> {
  end(error);
  return new Promise(() => {});
}

async function deliverOne({ id, key, alone }: Extract<ToDeliveryProcess, { type: 'deliver' }>) {
  const context = {
    logger,
    signal: stopping.signal,
    retryMs: config.handlerRetryMs,
    onEvent: core.onEvent,
    onCall: ({ company, instanceId, resource }: HeldConsumer, [first, ...rest]: readonly FeedEntry[]) => {
      const call = { company, instanceId, resource, record: first?.id ?? '', records: rest.length + 1 };
      send({ type: 'call', id, call });
    },
  };
  const delivered = await deliverList(core.stores.changes, consumers, key, context, alone);
  send({ type: 'done', id, delivered });
}

async function stop(): Promise<void> {
  stopping.abort(new Error('The process ends.'));
  await Promise.all(underWay);
  await close();
  process.exit(0);
}
