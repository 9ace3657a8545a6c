import { BrowserStore } from './browsers.ts';
import type { Database } from './database.ts';
import { InstallStore } from './installs.ts';
import { InstanceStore } from './instances.ts';
import { ParkedStore } from './parked-batches.ts';
import { QuarantineStore } from './quarantine.ts';
import { RecordStore } from './records.ts';
import { RunStore } from './runs.ts';
import { TokenStore } from './tokens.ts';

/** The stores of a database that several parts of the app share. */
export function openStores(db: Database) {
  return {
    instances: new InstanceStore(db),
    tokens: new TokenStore(db),
    browsers: new BrowserStore(db),
    installs: new InstallStore(db),
    runs: new RunStore(db),
    records: new RecordStore(db),
    parked: new ParkedStore(db),
    quarantine: new QuarantineStore(db),
  };
}
