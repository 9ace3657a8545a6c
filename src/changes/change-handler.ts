import type { Kysely, Transaction } from 'kysely';
import type { Logger } from 'pino';
import type { RESOURCES } from '../integration/resources.ts';
import type { HandlerTables } from '../integration/schema.ts';
import type { ServiceClient } from '../service/calls.ts';
import type { DocumentAt } from '../sync/resource.ts';

type Known = (typeof RESOURCES)[number];

/** One change of a record, with the record's newest form. */
export type Change<Document> = {
  /** It rises with every change of the list, and never repeats. */
  seq: number;
  id: string | number;
} & ({ change: 'created' | 'changed'; document: Document } | { change: 'deleted'; document: null });

/** Changes of one list of one company, in order of `seq`. `resource` decides the type of the documents. */
export type ChangeBatch = {
  [Name in Known['name']]: {
    instanceId: string;
    /** Null where the service does not name the company. */
    companyId: string | null;
    resource: Name;
    changes: readonly Change<DocumentAt<Extract<Known, { name: Name }>['route']>>[];
  };
}[Known['name']];

/** The tools of a handler. */
export interface HandlerContext {
  /**
   * The service's API with the company's authorization: `service.listTags()`. It shares the limit with the sync, and
   * waits for permits. These waits do not count as the handler's time. Do not catch its errors.
   */
  service: ServiceClient;
  /** The app's database with the tables of `src/integration/schema.ts`. For a transaction, return a function. */
  db: Omit<Kysely<HandlerTables>, 'transaction' | 'startTransaction' | 'connection' | 'destroy'>;
  logger: Logger;
  /** Aborted when the time is over or the process shuts down. Pass it to calls that can hang. */
  signal: AbortSignal;
}

/** A handler may return this function. It runs in the transaction that moves the cursor, for five seconds at most. */
export type InTransaction = (transaction: Transaction<HandlerTables>) => Promise<void>;

/**
 * Your handler. The app calls it at least once for every change. If it throws or takes too long
 * (HANDLER_TIMEOUT_SECONDS), the app calls it again after a pause, record by record. After five tries the record
 * becomes a dead letter.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: most handlers return nothing.
export type ChangeHandler = (batch: ChangeBatch, context: HandlerContext) => Promise<InTransaction | void>;
