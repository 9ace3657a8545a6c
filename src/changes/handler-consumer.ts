import { AsyncLocalStorage } from 'node:async_hooks';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Kysely, KyselyPlugin, Transaction } from 'kysely';
import type { HandlerTables, Settings } from '../integration/types.ts';
import { redact } from '../runtime/redaction.ts';
import type { ServiceClient } from '../service/calls.ts';
import { ServiceError } from '../service/errors.ts';
import type { ClientFor } from '../service/service-client.ts';
import { type ChangeStore, type FeedEntry, HANDLER_CONSUMER, type HeldConsumer } from '../store/changes.ts';
import type { Database } from '../store/database.ts';
import { addWrites } from '../store/outbox.ts';
import { recordId } from '../store/page-items.ts';
import type { Schema } from '../store/schema.ts';
import {
  type ChangeBatch,
  type ChangeHandler,
  type HandlerContext,
  type InTransaction,
  TargetDown,
} from './change-handler.ts';
import { collectWrites } from './collect-writes.ts';
import { type ChangeConsumer, ConsumerError, type DeliveryContext } from './delivery.ts';

/** What a worker knows of the consumer. */
export const HANDLER = { name: HANDLER_CONSUMER, whileActive: true } as const;

/** The function that a handler returns may use the transaction this long, in milliseconds. */
export const TRANSACTION_MS = 5_000;

/** A call of the service waits at most this long for the limit, in milliseconds. */
const LONGEST_WAIT_MS = 10 * 60_000;

/** An error message is cut after so many UTF-16 units. */
const LONGEST_REASON = 1_000;

/** While the process stands still, because others compute, at most this part of a call's time passes. */
const TICKS = 20;

/** How long a handler may ignore the signal when the process ends. */
const ENDING_MS = 2_000;

export interface HandlerParts {
  handler: ChangeHandler;
  settings: Settings;
  /** Time of one call in milliseconds, without its calls of the service. */
  timeoutMs: number;
  changes: ChangeStore;
  db: Database;
  /** Told when the function of a handler begins and ends: while it computes, nothing in this process can stop it. */
  onTransaction?: ((isUnderWay: boolean) => void) | undefined;
  serviceFor(whose: ClientFor): ServiceClient;
}

/** A call of the handler, for what it leaves behind. */
interface Call {
  /** Fails the call; undefined when it is over. */
  fail: ((error: unknown) => void) | undefined;
  /** Logs the first rejection that comes after the call. */
  tell: ((error: unknown) => void) | undefined;
}

/** The call that a piece of code, also one that comes later, belongs to. */
const calls = new AsyncLocalStorage<Call>();

/** Takes a rejection that nobody caught, in its own context. It fails its call. @returns whether a call is to blame */
export function takeRejection(error: unknown): boolean {
  const call = calls.getStore();
  if (call?.fail !== undefined) call.fail(error);
  else call?.tell?.(error);
  if (call !== undefined) call.tell = undefined;
  return call !== undefined;
}

/** The consumer that calls the integrator's handler. */
export function handlerConsumer(parts: HandlerParts): ChangeConsumer {
  return {
    ...HANDLER,
    take(entries, held, context) {
      const timer = limitTime(parts.timeoutMs, context.signal);
      const facts = { company: held.company, record: entries[0]?.id, records: entries.length };
      const text = 'a promise of the handler rejected after its call';
      const call: Call = { fail: timer.fail, tell: (err) => context.logger.error({ err, ...facts }, text) };
      return calls.run(call, async () => {
        try {
          const { instanceId, companyId, resource } = held;
          const batch = { instanceId, companyId, resource, changes: entries.map(toChange) } as ChangeBatch;
          const handle = async () => parts.handler(batch, contextOf(parts, held, context, timer));
          const returned = await untilLate(handle(), timer.late);
          if (typeof returned !== 'function') return undefined;
          return (tx: Transaction<Schema>) =>
            calls.run(call, () => inTransaction(parts, held.instanceId, returned, tx, call));
        } catch (error) {
          throw failureOf(error);
        } finally {
          timer.end();
          call.fail = undefined;
        }
      });
    },
  };
}

/** Waits for the end of the turn, too: there Node reports the rejections that nobody caught. */
async function untilLate<Value>(work: Promise<Value>, late: Promise<never>): Promise<Value> {
  const value = await Promise.race([work, late]);
  await Promise.race([nextTurn(), late]);
  return value;
}

function contextOf(
  { db, changes, settings, serviceFor }: HandlerParts,
  held: HeldConsumer,
  { logger }: DeliveryContext,
  { signal, around }: ReturnType<typeof limitTime>,
): HandlerContext {
  const { instanceId, companyId } = held;
  // A pause or a disconnect stops the calls, too.
  const isWanted = () => changes.holds(held);
  const company = companyId ?? instanceId;
  const whose = { instanceId, company, signal, maxWaitMs: LONGEST_WAIT_MS, around, isWanted };
  return { db: withoutTransactions(db), settings, logger, signal, service: serviceFor(whose) };
}

function toChange({ id, seq, change, document }: FeedEntry) {
  const parsed = document === null ? null : JSON.parse(document);
  return { seq, id: recordId(id), change, document: parsed, text: document };
}

async function inTransaction(
  { db, onTransaction }: HandlerParts,
  instanceId: string,
  work: InTransaction,
  transaction: Transaction<Schema>,
  call: Call,
): Promise<void> {
  let isOver = false;
  // A statement that comes late must not run after the transaction.
  const guard: KyselyPlugin = {
    transformQuery({ node }) {
      if (isOver) throw new Error('The transaction is over.');
      return node;
    },
    transformResult: async ({ result }) => result,
  };
  const collected = collectWrites(instanceId);
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const seconds = TRANSACTION_MS / 1_000;
    late.reject(new Error(`The function that the handler returned took more than ${seconds} s.`));
  }, TRANSACTION_MS);
  call.fail = late.reject;
  onTransaction?.(true);
  try {
    await db.dialect.limitStatements?.(transaction, TRANSACTION_MS);
    const guarded = transaction.withPlugin(guard) as unknown as Transaction<HandlerTables>;
    await untilLate(work(guarded, collected.outbox), late.promise);
    // PostgreSQL aborts a transaction at its first failed statement, even if the function caught the error.
    await transaction.selectNoFrom((eb) => eb.lit(1).as('one')).execute();
    await addWrites(db, transaction, instanceId, collected.close());
  } catch (error) {
    throw failureOf(error);
  } finally {
    clearTimeout(timer);
    onTransaction?.(false);
    call.fail = undefined;
    isOver = true;
    collected.close();
  }
}

/** A handler that hangs in a transaction of its own would keep the connection, and SQLite has one. */
function withoutTransactions(db: Database): HandlerContext['db'] {
  const refused: readonly unknown[] = ['transaction', 'startTransaction', 'connection', 'destroy'];
  return new Proxy(db as unknown as Kysely<HandlerTables>, {
    get(target, name) {
      if (refused.includes(name)) {
        throw new Error(`context.db has no ${String(name)}: return a function, which runs in a transaction.`);
      }
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** A handler may throw anything: the app keeps the words. */
function failureOf(cause: unknown): ConsumerError {
  let words = 'The handler failed with something that is no error.';
  try {
    words = String(cause instanceof Error ? cause.message : cause);
    // Such as "fetch failed", which does not say why.
    if (cause instanceof TypeError && cause.cause instanceof Error) words += `: ${cause.cause.message}`;
  } catch {
    // An object without a text.
  }
  const isLimit = cause instanceof ServiceError && cause.remedy === 'wait';
  const waitMs = cause instanceof TargetDown ? cause.waitMs : isLimit ? cause.retryAfterMs : undefined;
  return new ConsumerError(redact(words).slice(0, LONGEST_REASON), { cause, waitMs });
}

/**
 * Limits the time of one call. The timer stands still during calls of the service, which have a limit of their own.
 *
 * @returns `late`, which rejects when the time is over; `signal`, aborted then, at the end and when the process shuts down
 */
function limitTime(limitMs: number, shutdown: AbortSignal) {
  const over = new AbortController();
  const late = Promise.withResolvers<never>();
  let timer: NodeJS.Timeout | undefined;
  let leftMs = limitMs;
  let startedAt = 0;
  let serviceCalls = 0;
  const start = (): void => {
    if (over.signal.aborted) return;
    startedAt = performance.now();
    timer = setTimeout(tick, Math.max(0, Math.min(leftMs, limitMs / TICKS)));
  };
  const stop = (): void => {
    clearTimeout(timer);
    leftMs -= Math.min(performance.now() - startedAt, limitMs / TICKS);
  };
  const tick = (): void => {
    stop();
    if (leftMs > 0) start();
    else {
      const error = new Error(`The handler took more than ${limitMs / 1_000} s (HANDLER_TIMEOUT_SECONDS).`);
      late.reject(error);
      over.abort(error);
    }
  };
  late.promise.catch(() => undefined);
  const giveUp = () => setTimeout(() => late.reject(shutdown.reason), ENDING_MS).unref();
  shutdown.addEventListener('abort', giveUp, { signal: over.signal });
  start();
  return {
    signal: AbortSignal.any([shutdown, over.signal]),
    late: late.promise,
    fail: late.reject,
    /** Stops the timer during a call of the service. */
    async around<Answer>(call: () => Promise<Answer>): Promise<Answer> {
      if (serviceCalls++ === 0) stop();
      try {
        return await call();
      } finally {
        if (--serviceCalls === 0) start();
      }
    },
    end(): void {
      clearTimeout(timer);
      over.abort();
    },
  };
}
