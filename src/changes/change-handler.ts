import type { Kysely, Transaction } from 'kysely';
import type { Logger } from 'pino';
import type { HandlerTables, KnownResource, Settings } from '../integration/types.ts';
import type { ServiceClient } from '../service/calls.ts';
import type { DocumentAt } from '../sync/resource.ts';
import type { Outbox } from './collect-writes.ts';

/** One change of a record, with the record's newest form. */
export type Change<Document> = {
  /** It rises with every change of the list, and never repeats. */
  seq: number;
  id: string | number;
} & (
  | {
      change: 'created' | 'changed';
      document: Document;
      /** The document as it came, to the byte: numbers above 2^53 lose digits in `document`. */
      text: string;
    }
  | { change: 'deleted'; document: null; text: null }
);

/** Changes of one list of one company, in order of `seq`. `resource` decides the type of the documents. */
export type ChangeBatch = {
  [Name in KnownResource['name']]: {
    instanceId: string;
    /** Null where the service does not name the company. */
    companyId: string | null;
    resource: Name;
    changes: readonly Change<DocumentAt<Extract<KnownResource, { name: Name }>['route']>>[];
  };
}[KnownResource['name']];

export interface HandlerContext {
  /**
   * The service's API with the company's authorization: `service.listTags()`. It shares the limit with the sync, and
   * waits for permits. These waits do not count as the handler's time. Do not catch its errors.
   */
  service: ServiceClient;
  /** The app's database with the tables of `src/integration/schema.ts`. For a transaction, return a function. */
  db: Omit<Kysely<HandlerTables>, 'transaction' | 'startTransaction' | 'connection' | 'destroy'>;
  /** The values of `src/integration/settings.ts`. */
  settings: Settings;
  logger: Logger;
  /** Aborted when the time is over or the process shuts down. Pass it to calls that can hang. */
  signal: AbortSignal;
}

/**
 * A handler may return this function. It runs in the transaction that moves the cursor, for five seconds at most. What it
 * puts into the outbox is sent once, after the transaction.
 */
export type InTransaction = (transaction: Transaction<HandlerTables>, outbox: Outbox) => Promise<void>;

/** Bounds of a handler's wish to wait, in seconds, and the wait without a wish. */
const TARGET_WAIT = { least: 0.1, most: 24 * 60 * 60, usual: 60 } as const;

/**
 * Throw it when your own system is away: the list waits, and no try counts.
 *
 * @param options.retryAfterSeconds when the app calls the handler again: 60 by default, a day at most
 */
export class TargetDown extends Error {
  override readonly name = 'TargetDown';
  readonly waitMs: number;

  constructor(message: string, { retryAfterSeconds }: { retryAfterSeconds?: number } = {}) {
    super(message);
    const { least, most, usual } = TARGET_WAIT;
    const seconds = Number(retryAfterSeconds ?? usual);
    this.waitMs = 1_000 * (Number.isNaN(seconds) ? usual : Math.min(Math.max(seconds, least), most));
  }
}

/**
 * Your handler. The app calls it at least once for every change. If it throws or takes too long
 * (HANDLER_TIMEOUT_SECONDS), the app calls it again after a pause, record by record. After the last try
 * (HANDLER_RETRY_SECONDS) the record becomes a dead letter.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: most handlers return nothing.
export type ChangeHandler = (batch: ChangeBatch, context: HandlerContext) => Promise<InTransaction | void>;
