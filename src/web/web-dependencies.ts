import type { Redis } from 'ioredis';
import type { Logger } from 'pino';
import type { Installs } from '../auth/install.ts';
import type { BrowserStore } from '../store/browsers.ts';
import type { RecordStore } from '../store/records.ts';
import type { InstanceState, ListState } from '../store/states.ts';
import type { InstanceControl, InstanceStatus } from '../sync/status-types.ts';
import type { LiveOptions } from './live-streams.ts';
import type { RequestFacts } from './request-log.ts';
import type { WebLimits } from './web-limits.ts';

/** A resource of the registry: `name` stands in addresses, `title` in headings. */
export interface WebResource {
  name: string;
  title: string;
}

/** What the operator's page shows. */
export interface OperationsOverview {
  /** A page of all instances. */
  instances: Pick<InstanceStatus, 'id' | 'name' | 'company_id' | 'status' | 'notice' | 'resources'>[];
  /** Which page, from 1. */
  page: number;
  /** How many instances there are, and how many of them and of their lists are in which state. */
  total: number;
  states: Partial<Record<InstanceState, number>>;
  lists: Partial<Record<ListState, number>>;
  /** Counts of jobs by state, as the queue names its states. */
  queues: { name: string; counts: Record<string, number> }[];
  /** Worker processes that live; undefined when that cannot be told. */
  workers: number | undefined;
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
  changes: ChangeFeed;
  resources: readonly WebResource[];
  readiness(): Promise<{ ok: boolean; checks: Record<string, string> }>;
  metrics(): Promise<{ contentType: string; body: string }>;
  /** Opens the operator's page; without it that page answers 404. */
  operations?: { password: string; overview(page: number): Promise<OperationsOverview> };
  logger: Logger;
  /** Called once a request, when it is over: for the metrics. */
  onRequest?: (facts: RequestFacts) => void;
  /** Ends every open stream when it aborts, so that the server can close. */
  shutdown?: AbortSignal;
  /** Milliseconds since 1970, local clock. */
  now?: () => number;
  live?: Partial<LiveOptions>;
  limits?: Partial<WebLimits>;
}
