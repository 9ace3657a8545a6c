import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Installs } from '../auth/install.ts';
import type { ActionStore } from '../store/action-log.ts';
import type { BrowserStore } from '../store/browsers.ts';
import type { RecordStore } from '../store/records.ts';
import type { StatusPage, StatusQuery } from '../sync/status.ts';
import type { InstanceControl } from '../sync/status-types.ts';
import type { RequestFacts } from './request-log.ts';
import type { WebLimits } from './web-limits.ts';

/** A resource of the registry: `name` stands in addresses, `title` in headings, and `columns` say what a record shows. */
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
}

/** What every page goes by. */
export interface Site {
  resources: readonly WebResource[];
  /** Where administrators find help. */
  support: string;
}

/** What the operator sees of the app as a whole. */
export interface OperationsOverview extends StatusPage {
  /** Counts of jobs by state; undefined while Redis is away. */
  queues: { name: string; counts: Record<string, number> }[] | undefined;
  /** Worker processes that live; undefined when that cannot be told. */
  workers: { id: string; version: string; startedAt: string | null }[] | undefined;
}

/** The change feed of a list, as lines of JSON in the order of their `seq`. */
export interface ChangeFeed {
  /**
   * @param range.after begins behind this `seq`; 0 gives the whole copy
   * @param range.limit lines at most
   */
  feed(instanceId: string, resource: string, range: { after: number; limit: number }): AsyncIterable<string>;
}

/** Everything that the web app needs of the rest; it reaches for nothing else. */
export interface WebDependencies {
  /** Where browsers reach the app, without a trailing slash or path. */
  publicUrl: string;
  /** Proxies in front of the app whose word counts; behind an https address stands at least one. */
  proxyHops: number;
  /** Signs the session cookie. */
  sessionSecret: string;
  /** Keeps compiled pages in memory. */
  production: boolean;
  /** What every page shows of the app. */
  appInfo: AppInfo;
  /** Says on every page that the service is the sandbox. */
  isSandbox: boolean;
  /** The sandbox's front page, for a link. */
  sandboxUrl?: string;
  /** Counts attempts. */
  redis: Redis;
  browsers: BrowserStore;
  installs: Installs;
  control: InstanceControl;
  records: Pick<RecordStore, 'browse' | 'find' | 'stream'>;
  actions: Pick<ActionStore, 'add' | 'list'>;
  changes: ChangeFeed;
  resources: readonly WebResource[];
  readiness(): Promise<{ ok: boolean; checks: Record<string, string> }>;
  metrics(): Promise<{ contentType: string; body: string }>;
  /** Opens the operator's pages; without it they answer 404. */
  operations?: { password: string; overview(query: StatusQuery): Promise<OperationsOverview> };
  logger: Logger;
  /** Called once a request, when it is over: for the metrics. */
  onRequest?: (facts: RequestFacts) => void;
  /** Aborts when the process ends: then `/readyz` says so. */
  shutdown?: AbortSignal;
  /** Milliseconds since 1970, local clock. */
  now?: () => number;
  limits?: Partial<WebLimits>;
}
