import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Installs } from '../auth/install.ts';
import type { ActionStore } from '../store/action-log.ts';
import type { BrowserStore } from '../store/browsers.ts';
import type { Instance } from '../store/instances.ts';
import type { RecordStore } from '../store/records.ts';
import type { SyncControl } from '../sync/control.ts';
import type { StatusQuery, StatusReader } from '../sync/status.ts';
import type { StatusPage, TroubleJson } from '../sync/status-types.ts';
import type { WebLimits } from './rate-limit.ts';
import type { RequestFacts } from './request-log.ts';

/** A resource of src/integration/resources.ts. */
export interface WebResource {
  name: string;
  title: string;
  columns?: readonly { title: string; path: string }[];
}

/** What every page shows of the app: see src/integration/app-info.ts. */
export interface AppInfo {
  name: string;
  description: string;
  colour: string;
  support: string;
  /** The address of a picture that stands in place of icon and name. */
  logo?: string;
}

export interface Site extends Pick<AppInfo, 'name' | 'support'> {
  resources: readonly WebResource[];
}

/** The app as a whole, for the operator. */
export interface OperationsOverview extends StatusPage {
  /** Counts of jobs by state; undefined while Redis is away. */
  queues: { name: string; counts: Record<string, number> }[] | undefined;
  /** Worker processes of the last minutes, by their heartbeats; undefined while Redis is away. Milliseconds since 1970. */
  workers:
    | { id: string; version: string; startedAt: number; at: number | null; delivery: string }[]
    | undefined;
}

/** The change feed of a list, as lines of JSON in the order of their `seq`. */
interface ChangeFeed {
  /**
   * @param range.after the last `seq` that is left out; 0 gives the whole copy
   */
  feed(instanceId: string, resource: string, range: { after: number; limit: number }): AsyncIterable<string>;
}

export interface WebDependencies {
  /** Where browsers reach the app, without a trailing slash or path. */
  publicUrl: string;
  /** Trusted proxies in front of the app. */
  proxyHops: number;
  /** Signs the session cookie. */
  sessionSecret: string;
  /** Keeps compiled pages in memory. */
  production: boolean;
  appInfo: AppInfo;
  /** The folder of the fork's own pages and assets. */
  ownViews?: string | undefined;
  isSandbox: boolean;
  /** The sandbox's front page, for a link. */
  sandboxUrl?: string;
  redis: Redis;
  browsers: BrowserStore;
  installs: Installs;
  control: Pick<SyncControl, keyof SyncControl>;
  status: Pick<StatusReader, 'read' | 'readProblems' | 'readWrites' | 'readRuns' | 'readDays'>;
  /** For pages that need no status. */
  instances: {
    find(id: string): Promise<Pick<Instance, 'id' | 'company_id' | 'name' | 'status'> | undefined>;
  };
  records: Pick<RecordStore, 'browse' | 'find' | 'stream' | 'freshness'>;
  actions: Pick<ActionStore, 'add' | 'list' | 'pauses'>;
  changes: ChangeFeed;
  resources: readonly WebResource[];
  readiness(): Promise<{ ok: boolean; checks: Record<string, string> }>;
  metrics(): Promise<{ contentType: string; body: string }>;
  /** The operator's pages, which otherwise answer 404. */
  operations?: {
    password: string;
    overview(query: StatusQuery): Promise<OperationsOverview>;
    /** What is wrong with one instance. */
    troubles(instanceId: string): Promise<TroubleJson[]>;
  };
  logger: Logger;
  /** Called at the end of each request. */
  onRequest?: (facts: RequestFacts) => void;
  /** Aborts when the process ends. */
  shutdown?: AbortSignal;
  /** Milliseconds since 1970, local clock. */
  now?: () => number;
  limits?: Partial<WebLimits>;
}
