import { ActionStore } from './action-log.ts';
import { BrowserStore } from './browsers.ts';
import { ChangeStore } from './changes.ts';
import type { Database } from './database.ts';
import { DeletionStore } from './deletions.ts';
import { DueListStore } from './due-lists.ts';
import { ErasureStore } from './erasure.ts';
import { InstallStore } from './installs.ts';
import { InstanceStore } from './instances.ts';
import { OutboxStore } from './outbox.ts';
import { PageStore } from './pages.ts';
import { RecordStore } from './records.ts';
import { RemovalStore } from './removals.ts';
import { RunStore } from './runs.ts';
import { TokenStore } from './token-table.ts';

/** The stores of a database that several parts of the app share. */
export function openStores(db: Database) {
  return {
    instances: new InstanceStore(db),
    tokens: new TokenStore(db),
    browsers: new BrowserStore(db),
    installs: new InstallStore(db),
    dueLists: new DueListStore(db),
    runs: new RunStore(db),
    pages: new PageStore(db),
    records: new RecordStore(db),
    deletions: new DeletionStore(db),
    changes: new ChangeStore(db),
    outbox: new OutboxStore(db),
    removals: new RemovalStore(db),
    erasure: new ErasureStore(db),
    actions: new ActionStore(db),
  };
}

export type Stores = ReturnType<typeof openStores>;
