import type { Kysely, Transaction } from 'kysely';
import type { Logger } from 'pino';
import type { RESOURCES } from '../integration/resources.ts';
import type { HandlerTables } from '../integration/schema.ts';
import type { ServiceClient } from '../service/calls.ts';
import type { DocumentAt } from '../sync/resource.ts';

type Known = (typeof RESOURCES)[number];

/** One change of a record: its newest form. */
export type Change<Document> = {
  /** Rises with every change of the list, and never comes twice. */
  seq: number;
  id: string | number;
} & ({ change: 'created' | 'changed'; document: Document } | { change: 'deleted'; document: null });

/** Changes of one list of one company, in the order of `seq`; `resource` decides the type of the documents. */
export type ChangeBatch = {
  [Name in Known['name']]: {
    instanceId: string;
    /** Null where the service does not tell which company it is. */
    companyId: string | null;
    resource: Name;
    changes: readonly Change<DocumentAt<Extract<Known, { name: Name }>['route']>>[];
  };
}[Known['name']];

/** What a handler works with. */
export interface HandlerContext {
  /**
   * The service's API with the company's authorization: `service.listTags()`. It keeps the limits together with the
   * sync, and waits for them; its waits do not count as the handler's time. Let its errors through.
   */
  service: ServiceClient;
  /** The app's database, with the tables of `src/integration/schema.ts`; for a transaction return a function. */
  db: Omit<Kysely<HandlerTables>, 'transaction' | 'startTransaction' | 'connection' | 'destroy'>;
  logger: Logger;
  /** Aborted when the time is over or the process ends: hand it on to what can hang. */
  signal: AbortSignal;
}

/** What a handler may return: it runs in the transaction that moves the cursor, for five seconds at most. */
export type InTransaction = (transaction: Transaction<HandlerTables>) => Promise<void>;

/**
 * Your handler. It is called at least once for every change. If it throws or takes too long (HANDLER_TIMEOUT_SECONDS),
 * it is called again after a pause, record by record; after five tries the record becomes a dead letter.
 */
// biome-ignore lint/suspicious/noConfusingVoidType: most handlers return nothing.
export type ChangeHandler = (batch: ChangeBatch, context: HandlerContext) => Promise<InTransaction | void>;
