import type { Generated } from 'kysely';
import type { ErrorKind, InstanceState, RunState, WriteState } from './states.ts';

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
  /** Since when it is in its state; 0 if an older version set it. */
  status_since: Generated<number>;
  /** When the service was last asked for the name. */
  named_at: Generated<number>;
}

/** An erased record of a company whose copy was deleted, or a list with such records: a keyed hash. */
interface TombstoneTable {
  hash: string;
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
  /** 1 once another browser has logged this one out of the instance. */
  is_ended: Generated<0 | 1>;
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
  /** From the end of one full run to the start of the next; null: as configured. */
  interval_minutes: number | null;
  /** 1 if records were erased before the company's present install. */
  has_tombstones: Generated<number>;
  /** Since when the list is being removed: nothing shows it any more. */
  removed_at: number | null;
  /** Counts claims, pauses and disconnects: a commit of a page names the fence that it holds. */
  fence: Generated<number>;
  /** Counts the commits of checks. They move no cursor, so that a commit names this number, too. */
  commits: Generated<number>;
  /** From when on the list needs a job: the start of its next run or check, or the end of its open run's wait. */
  due_at: number | null;
  /** When the next full run starts, and when the next check. Null: no check. */
  full_due_at: Generated<number>;
  check_due_at: number | null;
  /** When the first pages were last read to what is known, and when the whole list was. */
  checked_at: number | null;
  full_at: number | null;
  /** The last full run that came to its end. */
  full_run: number | null;
  /** Only every so many intervals has a check: more than 1 where checks find too little. */
  check_every: Generated<number>;
  /** From so many requests of the open run on, the next check may begin. */
  check_after: Generated<number>;
  /** Changes that checks have caught since the last full run, and checks in a row that ran out. */
  caught: Generated<number>;
  ran_out: Generated<number>;
  /** Live records that the last full run did not see, and those of them whose deletion is held. */
  missing: Generated<number>;
  held: Generated<number>;
  /** The first of the full runs in a row that held, and when it ended. */
  held_run: number | null;
  held_since: number | null;
}

/**
 * One full run over a list, or one check that found something. A run is open until `finished_at` is set; an open run that
 * is `failed` is tried again at `wait_until`. A check's row comes at its end, and is never open.
 *
 *     waiting ⇄ running ─→ finished
 *        ↑         └─→ failed ─→ (tried again) or closed
 */
export interface RunTable {
  id: Generated<number>;
  list: number;
  kind: Generated<'full' | 'check'>;
  state: RunState;
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
  /** Changes on pages behind the first one without a change; null up to that page. */
  behind: number | null;
  /** Live records that the run did not see and did not delete, and those of them whose deletion it holds back. */
  missing: Generated<number>;
  held: Generated<number>;
  /** 1 if a check in the run ran out or failed: then the run deletes nothing. */
  is_unsure: Generated<0 | 1>;
  /** 1 if no run had read the whole list before. */
  is_first: Generated<0 | 1>;
  /** 1 if the run before had missing records, and this one began at once. */
  is_repeat: Generated<0 | 1>;
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

/** The sums of a list on one day, of runs that the history does not hold any more. */
export interface DayTable {
  list: number;
  /** Days since 1970, in UTC. */
  day: number;
  /** Full runs that finished. */
  runs: number;
  /** 1 if a run failed, for good or for a while. */
  failed: number;
  /** Records, without those of the first copy, which are counted by themselves. */
  created: number;
  changed: number;
  deleted: number;
  first_copy: number;
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

/** Which full run saw a live record last. A check notes the open full run, or else the last one. */
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
  /** When the delivery under way began. It stays there if the delivery process ends with it. */
  begun_at: number | null;
  /** The last number of the batch that was under way when the process ended. */
  begun_to: number | null;
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
  /** When the app gives it to the consumer again, and until when it plans such tries. */
  retry_at: number | null;
  retry_until: Generated<number>;
  /** 1 while the consumer has it again: one failure makes it a dead letter again. */
  is_retried: Generated<0 | 1>;
}

/** When the sender of an instance has work: null where nothing is to be sent. */
interface OutboxesTable {
  instance_id: string;
  due_at: number | null;
  /** Counts what set `due_at` to now: a sender that has seen less looks again. */
  wakes: Generated<number>;
  /** Writes that were discarded by the last disconnect. */
  discarded: Generated<number>;
}

/**
 * One write that a handler put into the outbox. Times are milliseconds since 1970 by the database's clock.
 *
 *     pending ⇄ sending ─→ done
 *        ↑         ├─→ refused ── a person ─→ pending, or discarded
 *        └─────────┴─→ unknown ── a person ─→ pending, or done
 */
export interface OutboxTable {
  id: Generated<number>;
  instance_id: string;
  key_hash: string;
  /** Of operation, path values and body: a key stands for one request. */
  request_hash: string;
  /** The route's name in the contract. */
  operation: string;
  is_repeatable: 0 | 1;
  state: WriteState;
  /** 1 once a try may have reached the service. */
  was_sent: Generated<0 | 1>;
  /** Tries so far. It fences: a result names the try that it comes from. */
  attempts: Generated<number>;
  /** Of a pending write: when it may be sent. While it is being sent: the end of the lease. */
  not_before: Generated<number>;
  created_at: number;
  /** When it was done or discarded. */
  ended_at: number | null;
  /** The answer's HTTP status and id, or the error in words for an administrator. */
  status: number | null;
  answer_id: string | null;
  error: string | null;
  /** The rest is null once the retention is over. */
  key: string | null;
  /** Resource and id of the path: one write of an object at a time, in the order of their numbers. */
  object: string | null;
  /** JSON. */
  path_values: string | null;
  body: string | null;
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
  /** `administrator`, `command`, or `operator` with the name of the login. */
  by: string;
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
  days: DayTable;
  records: RecordTable;
  seen: SeenTable;
  rejected_records: RejectedRecordTable;
  consumers: ConsumerTable;
  dead_letters: DeadLetterTable;
  outboxes: OutboxesTable;
  outbox: OutboxTable;
  actions: ActionTable;
  tombstones: TombstoneTable;
}
