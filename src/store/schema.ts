import type { Generated } from 'kysely';
import type { InstanceState, RunState } from './states.ts';

/** An installation of the app at one company. All times are milliseconds since 1970. */
export interface InstanceTable {
  id: string;
  /** The service's id of the company; null when the service does not tell whose token it is. */
  company_id: string | null;
  name: string;
  status: InstanceState;
  /** Why the instance needs attention, or null. */
  notice: string | null;
  installed_at: number;
}

/** The tokens of an instance, encrypted, with the moments of their lives in the service's time. */
export interface TokenTable {
  instance_id: string;
  /** Both null after a disconnect. */
  access_token: string | null;
  refresh_token: string | null;
  access_expires_at: number;
  refresh_issued_at: number;
  /** From when on the rotation tries, until the refresh token has changed. */
  refresh_due_at: number;
  /** When a refresh last succeeded. */
  refreshed_at: number;
  /** Counts token writes. Every write names the version that it read. */
  version: number;
  rotations: number;
  refreshes: number;
  /** Who refreshes now, and until when nobody else may; by the database's clock. */
  lease_owner: string | null;
  lease_until: number | null;
  /** No refresh before this, by the database's clock. With no failures only a refresh after a 401 waits for it. */
  refresh_not_before: number | null;
  /** Failed refreshes in a row. */
  refresh_failures: Generated<number>;
}

/** A browser that has begun an install. */
export interface BrowserTable {
  id: string;
}

/** A session of a browser: it names the browser, and holds nothing else. */
export interface SessionTable {
  sid_hash: string;
  browser_id: string;
  expires_at: number;
}

/** Which browser sees which instance. */
export interface AccessTable {
  browser_id: string;
  instance_id: string;
  granted_at: number;
}

/** An install: begun, claimed by a callback, and finished with an instance or an error. */
export interface InstallTable {
  state_hash: string;
  nonce_hash: string;
  browser_id: string;
  expires_at: number;
  code_hash: string | null;
  claimed_at: number | null;
  instance_id: string | null;
  error_kind: string | null;
  /** What the error's page says, in words for an administrator. */
  error_detail: string | null;
}

/** Facts about the whole database, by name. */
export interface SettingTable {
  name: string;
  value: string;
}

/** The run of one resource of one instance: the current one, or else the last. All progress lives here. */
export interface RunTable {
  /** Short for instance and resource, wherever there are many rows of a list. */
  list: Generated<number>;
  instance_id: string;
  resource: string;
  state: RunState;
  /** `pages` while paging, then `deletions` while marking what the run did not see. */
  phase: 'pages' | 'deletions';
  /** Counts the workers that took this run over: only the newest may commit. */
  fence: number;
  /** The next page as the service gave it, or null before the first one. */
  cursor: string | null;
  pages: number;
  records: number;
  skipped: number;
  deleted: number;
  /** Live records of the copy, whichever run brought them. */
  stored: number;
  /** Failures in a row. */
  attempt: number;
  /** How often the own logic was called with the batch that comes next, in vain or without an end; and the call under way. */
  own_tries: number;
  /** When the own logic was first called with that batch, if it has failed on it. */
  own_since: number | null;
  /** Waits in a row that the service has asked for at the page that comes next, other than by its limit (429). */
  waits: number;
  /** Since when no page has come from the cursor, though its tries were used up, or many waits kept; null for a page that may yet come. */
  stuck_since: number | null;
  error: string | null;
  waiting_until: number | null;
  waiting_for: 'limit' | 'retry' | 'turn' | null;
  started_at: number | null;
  finished_at: number | null;
  /** The first start since the list was last read to its end, however many runs have failed since; null while it is idle. */
  behind_since: number | null;
}

/** One record of the copy. */
export interface RecordTable {
  seq: Generated<number>;
  list: number;
  id: string;
  /** What the document is compared by. */
  hash: string;
  updated_at: number;
  deleted_at: number | null;
  document: string;
}

/** Records that the current run of a resource has seen, by `seq`, both ends included. */
export interface SeenRangeTable {
  list: number;
  first: number;
  last: number;
}

/** Records whose words the search index does not know yet, or knows as they were. */
export interface SearchQueueTable {
  place: Generated<number>;
  list: number;
  /** A list of `seq`s, as JSON. */
  seqs: string;
  count: number;
}

/** A batch that the own logic did not take, as `seq`s: what is done with it stands in parked-batches.ts. */
export interface ParkedBatchTable {
  place: Generated<number>;
  list: number;
  seqs: string;
  count: number;
  tries: number;
  error: string;
  parked_at: number;
  tried_at: number;
}

/** A note that the own logic may know a record otherwise than the copy: see in-doubt.ts. */
export interface InDoubtTable {
  list: number;
  /** As in {@link RecordTable}; the copy may have no record of it. */
  id: string;
  /** Of the claim under which the record was told. */
  fence: number;
  /** 1 when the own logic has it in any case, in whatever form. */
  is_known: number;
}

/** The beginning of something in a list that the copy cannot keep; by the hash of its whole text. */
export interface QuarantineTable {
  list: number;
  hash: string;
  reason: string;
  excerpt: string;
  length: number;
  first_seen_at: number;
  seen_at: number;
}

/** An instance whose copy is being removed: its runs wait until it is. */
export interface RemovalTable {
  instance_id: string;
}

/** The database as Kysely sees it. */
export interface Schema {
  instances: InstanceTable;
  tokens: TokenTable;
  browsers: BrowserTable;
  sessions: SessionTable;
  access: AccessTable;
  installs: InstallTable;
  settings: SettingTable;
  runs: RunTable;
  records: RecordTable;
  seen_ranges: SeenRangeTable;
  search_queue: SearchQueueTable;
  parked_batches: ParkedBatchTable;
  in_doubt: InDoubtTable;
  quarantine: QuarantineTable;
  removals: RemovalTable;
}
