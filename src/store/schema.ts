import type { Generated } from 'kysely';
import type { ErrorKind, InstanceState, RunState } from './states.ts';

/** An installation of the app at one company. All times are milliseconds since 1970. */
export interface InstanceTable {
  id: string;
  /** The service's id of the company; null when the service does not tell it. */
  company_id: string | null;
  name: string;
  status: InstanceState;
  /** Why the app copies nothing until a person acts, or null. */
  error_kind: ErrorKind | null;
  error_detail: string | null;
  installed_at: number;
}

/** The tokens of an instance, encrypted. Their lifetimes are in the service's time. */
export interface TokenTable {
  instance_id: string;
  /** Both null after a disconnect. */
  access_token: string | null;
  refresh_token: string | null;
  access_expires_at: number;
  refresh_issued_at: number;
  /** From when on the rotation tries to change the refresh token. */
  refresh_due_at: number;
  /** When a refresh last succeeded. */
  refreshed_at: number;
  /** Counts token writes. Every write names the version that it read. */
  version: number;
  rotations: number;
  refreshes: number;
  /** The process that refreshes now, and until when no other may, by the database's clock. */
  lease_owner: string | null;
  lease_until: number | null;
  /** No refresh before this, by the database's clock. Without failures it concerns a refresh after a 401 alone. */
  refresh_not_before: number | null;
  /** Failed refreshes in a row. */
  refresh_failures: Generated<number>;
}

/** A browser that has begun an install. */
interface BrowserTable {
  id: string;
}

/** A session of a browser: it names the browser, and holds nothing else. */
interface SessionTable {
  sid_hash: string;
  browser_id: string;
  expires_at: number;
}

/** Which browser sees which instance. */
interface AccessTable {
  browser_id: string;
  instance_id: string;
  granted_at: number;
}

/** An install: a browser begins it, a callback claims it, and it ends with an instance or an error. */
export interface InstallTable {
  state_hash: string;
  nonce_hash: string;
  browser_id: string;
  /** The path of the app that the browser goes to afterwards. */
  return_to: string | null;
  expires_at: number;
  code_hash: string | null;
  claimed_at: number | null;
  instance_id: string | null;
  error_kind: string | null;
  /** The message for an administrator. */
  error_detail: string | null;
}

/** Facts about the whole database, by name. */
interface SettingTable {
  name: string;
  value: string;
}

/** The copy of one resource of one instance. */
export interface ListTable {
  id: Generated<number>;
  instance_id: string;
  resource: string;
  /** The newest number in the list's change feed. Numbers rise, and none comes twice. */
  change_seq: Generated<number>;
  /** Live records. */
  stored: Generated<number>;
  /** The first start since the list was last read to its end; null while it is up to date. */
  behind_since: number | null;
  /** The first failure since the last page, or null. When the event handler was told of it. */
  failing_since: number | null;
  failing_told_at: number | null;
  /** Since when this list alone is paused. */
  paused_at: number | null;
  /** From the end of one run to the start of the next; null: as configured. */
  interval_minutes: number | null;
  /** Since when the list is being removed: nothing shows it any more. */
  removed_at: number | null;
}

/**
 * One run over a list. It is open until `finished_at` is set; an open run that is `failed` is tried again at `wait_until`.
 *
 *     waiting ⇄ running ─→ finished
 *        ↑         └─→ failed ─→ (tried again) or closed
 */
export interface RunTable {
  id: Generated<number>;
  list: number;
  state: RunState;
  /** Counts claims, pauses and disconnects: a commit names the fence that it holds. */
  fence: Generated<number>;
  /** The next page as the service gave it; null before the first page and after the last one. */
  cursor: string | null;
  pages: Generated<number>;
  records: Generated<number>;
  /** Different live records that the run has seen. */
  seen: Generated<number>;
  created: Generated<number>;
  changed: Generated<number>;
  deleted: Generated<number>;
  /** Rejected records, and those of them without a readable id. */
  rejected: Generated<number>;
  unreadable: Generated<number>;
  /** Requests for pages, and how many of them the service refused with 429. */
  requests: Generated<number>;
  refused: Generated<number>;
  /** Deletions that the run holds back. */
  held: Generated<number>;
  /** Failures in a row. */
  attempt: Generated<number>;
  wait_until: number | null;
  waiting_for: 'limit' | 'retry' | 'turn' | null;
  /** Since when no page has come from the cursor. */
  stuck_since: number | null;
  error_kind: ErrorKind | null;
  error_detail: string | null;
  started_at: number;
  finished_at: number | null;
}

/** One record of a list. */
export interface RecordTable {
  id: Generated<number>;
  list: number;
  external_id: string;
  /** The document's hash; null once the document is gone. */
  hash: string | null;
  /** Its number in the list's change feed, and its number when it came or came back. */
  change_seq: number;
  created_seq: number;
  deleted_at: number | null;
  /** An erased record stays out of the copy, even if the service still sends it. */
  erased_at: number | null;
  /** The text as it came; null once erased, or when the retention of a deleted record is over. */
  document: string | null;
}

/** Which run saw a live record last. */
interface SeenTable {
  list: number;
  record: number;
  run: number;
}

/** An item of a list that the copy cannot keep, by the hash of its text. */
interface RejectedRecordTable {
  list: number;
  hash: string;
  reason: string;
  excerpt: string;
  length: number;
  at: number;
  /** The run that met it last. */
  run: number;
}

/** How far a consumer of a list's change feed has come. */
export interface ConsumerTable {
  list: number;
  consumer: string;
  cursor: Generated<number>;
  fence: Generated<number>;
  /** Failed tries of the record behind the cursor, and its number. The next record counts anew. */
  attempts: Generated<number>;
  tried_seq: number | null;
  not_before: number | null;
  /** Dead letters since a record was last delivered. */
  failed_in_row: Generated<number>;
  error_kind: ErrorKind | null;
  error_detail: string | null;
}

/** A record that a consumer could not take. */
export interface DeadLetterTable {
  list: number;
  consumer: string;
  external_id: string;
  error_kind: ErrorKind;
  error_detail: string;
  at: number;
}

/** An action of a person on an instance. */
export interface ActionTable {
  id: Generated<number>;
  instance_id: string;
  /** Null for the whole instance. */
  resource: string | null;
  /** Null for several records, and after an erasure: an id is personal data, too. */
  record: string | null;
  action: string;
  by: 'administrator' | 'operator' | 'command';
  at: number;
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
  lists: ListTable;
  runs: RunTable;
  records: RecordTable;
  seen: SeenTable;
  rejected_records: RejectedRecordTable;
  consumers: ConsumerTable;
  dead_letters: DeadLetterTable;
  actions: ActionTable;
}
