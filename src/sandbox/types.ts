/**
 * The shapes that the sandbox takes from outside and answers with: in a seed, by its handle and by the control interface.
 * The package's types are made of this file, so it imports no library.
 */

import type { GuardRules } from '../contract/guards.ts';
import type { Plan } from '../contract/limits.ts';
import type { EXPOSE_WORDS } from '../contract/sandbox.ts';
import type { OAuthScope, Scope } from '../contract/scopes.ts';

/** A moment: milliseconds since 1970 or an ISO 8601 date. */
export type Moment = number | string;

/** A company to add. */
export interface CompanySpec {
  /** By default one is given out. */
  id?: string | undefined;
  name: string;
  plan: Plan;
  /** Requests a minute bought on top of the plan's. */
  addon_rpm?: number | undefined;
  /** How many are generated, 100 by default; or the records themselves. */
  contacts?: number | readonly Readonly<Record<string, unknown>>[] | undefined;
  /** How many are generated, 50 by default; or the records themselves. */
  conversations?: number | readonly Readonly<Record<string, unknown>>[] | undefined;
  /** Beside the two that every company has; by default the token is given out. */
  api_tokens?: readonly { token?: string | undefined; scopes: readonly Scope[] }[] | undefined;
}

/** A company with the ids of what it owns. */
export interface Company {
  id: string;
  name: string;
  plan: Plan;
  addon_rpm: number;
  teammates: { id: string; name: string; is_admin: boolean }[];
  api_tokens: readonly { token: string; scopes: readonly Scope[] }[];
  inboxes: string[];
  tags: string[];
  channels: string[];
  responses: string[];
  accounts: string[];
  links: string[];
  knowledge_bases: string[];
  articles: string[];
  /** By kind of record. */
  counts: Record<string, number>;
}

/**
 * Kind of an application: `partner` has the partner limit; `automation` counts against the company's own limit (Limits,
 * "except for one automation-platform integration"); `tool-protocol` has user-scoped tokens, and any teammate may
 * authorize it (Authentication, 3). Its limit is the partner one: the specification names no other exception.
 */
export type ApplicationKind = 'partner' | 'automation' | 'tool-protocol';

/** An OAuth application to register. */
export interface ApplicationSpec {
  name: string;
  redirect_uris: readonly string[];
  /** `partner` by default. */
  kind?: ApplicationKind | undefined;
  /** `shared_resources` by default. */
  scopes?: readonly OAuthScope[] | undefined;
  /** Where its server tells who the channel behind a token is (Authentication, 10); on this machine. */
  introspection_url?: string | undefined;
  /** By default given out, like the secret. */
  client_id?: string | undefined;
  client_secret?: string | undefined;
}

/** An application's credentials. */
export interface Credentials {
  client_id: string;
  client_secret: string;
  redirect_uris: string[];
}

/** A registered application. */
export interface Application extends Credentials {
  name: string;
  kind: ApplicationKind;
  scopes: readonly OAuthScope[];
  introspection_url?: string | undefined;
}

/** What the token route answers. */
export interface TokenAnswer {
  access_token: string;
  refresh_token: string;
  /** Of the access token: epoch seconds or an ISO 8601 date, see {@link Readings}. */
  expires_at: string | number;
  token_type: string;
}

/** A move of the clock: it is frozen or unfrozen, then set, then moved on. */
export interface ClockMove {
  advance_ms?: number | undefined;
  set?: Moment | undefined;
  frozen?: boolean | undefined;
}

/** Where the clock stands, in ms since 1970. */
export interface ClockState {
  now: number;
  frozen: boolean;
}

/** A guard beside the service's own. */
export interface GuardSpec {
  /** Sent in `x-service-tier`; a guard with the same tier takes its place. */
  tier: string;
  requests: number;
  per_ms: number;
  /** Literal, or as the specification writes them; every route of the API by default. */
  paths?: readonly string[] | undefined;
}

/** Lists that may be long, so that someone is paging while their records change to order. */
export type ChangeableResource = 'contacts' | 'conversations';

/** What shall happen to the records of a list: how many are concerned. */
export interface RecordChanges {
  resource: ChangeableResource;
  create?: number | undefined;
  delete?: number | undefined;
  change?: number | undefined;
  /** Puts the list into another order. */
  reorder?: boolean | undefined;
}

/** Which requests a fault is for; what is left out matches any. */
export interface FaultMatch {
  method?: string | undefined;
  /** Literal, or with the specification's placeholders: `/contacts/:contact_id`. */
  path?: string | undefined;
  company_id?: string | undefined;
  /** Of the application that asks; API tokens have none. */
  client_id?: string | undefined;
  /** Begins with this matching request, counted from 1; those before it go well. */
  nth?: number | undefined;
}

/** What goes wrong. */
export interface Fault {
  /** Answered in place of the route's answer; the request takes no effect, but counts for the limit. */
  status?: number | undefined;
  /** In place of the answer's body: a string as it is (it need not be JSON), anything else as JSON. */
  body?: unknown;
  /** Added to the answer's headers, or in place of them; null leaves one out. */
  headers?: Record<string, string | null> | undefined;
  /** Real milliseconds until the answer; the request took effect before. */
  delay_ms?: number | undefined;
  /** Closes the connection before or after the request took effect. */
  drop?: 'before' | 'after' | undefined;
  /** Only so many bytes of the body are sent; with `drop: "after"` under the full length, and then it closes. */
  truncate?: number | undefined;
  /** The head goes out at once, the body in pieces of `bytes`, with real milliseconds between them. */
  drip?: { bytes: number; every_ms: number } | undefined;
  /** Afterwards the access token that made the request is revoked, or all that was granted with it. */
  revoke?: 'access_token' | 'grant' | undefined;
  /** Afterwards records of the company that asked change. */
  records?: RecordChanges | undefined;
}

/** A fault to order for the next `times` matching requests, 1 by default. */
export interface FaultOrder {
  match?: FaultMatch | undefined;
  fault: Omit<Fault, 'headers'> & { headers?: Readonly<Record<string, string | number | null>> | undefined };
  times?: number | undefined;
}

/** A fault that was ordered. */
export interface FaultRow {
  id: string;
  match: FaultMatch;
  fault: Fault;
  times: number;
  /** How many requests it has met. */
  used: number;
  left: number;
  /** Matching requests that still go well before it begins. */
  to_pass: number;
}

/** The ids of the records that changed. */
export interface ChangedRecords {
  created: string[];
  deleted: string[];
  changed: string[];
  reordered: boolean;
}

/** A request in the journal. */
export interface JournalRow {
  /** Its number; the first is 1. */
  n: number;
  /** When it arrived, in ms since 1970 on the service's clock. */
  at: number;
  method: string;
  /** Below `{base_url}`, or `/oauth/…` below `{auth_url}`. */
  path: string;
  /** A parameter that is given more than once has a list. */
  query: Record<string, string | string[]>;
  /** 0 when the connection was closed without an answer. */
  status: number;
  company_id: string | null;
  /** The application's client id; null for API tokens. */
  application: string | null;
  /** The guard in `x-service-tier`. */
  tier: string | null;
  remaining: number | null;
  /** Id of the ordered fault that it met. */
  fault: string | null;
  /** Query parameters and members of the body that the route does not know: `query colour`, `body colour`. */
  ignored: readonly string[];
  /** Real milliseconds until the answer. */
  duration_ms: number;
}

/** Readings of points that the specification leaves open. */
export interface Readings {
  /** Form of `expires_at`: epoch seconds as a string (the default) or as a number, or an ISO 8601 date. */
  expiresAt: 'string' | 'number' | 'iso';
  /** Status of a change that the specification answers 200: that (the default), or 204 without a body. */
  changes: 200 | 204;
}

/** A limit's count; times in ms since 1970. */
export interface LimitRow {
  company_id: string;
  limit: number;
  remaining: number;
  reset_at: number;
}

/** All that the sandbox holds, without the records; times in ms since 1970. */
export interface State extends ClockState {
  api_url: string;
  auth_url: string;
  applications: Application[];
  companies: Company[];
  /** The valid ones, newest first, without their values. */
  tokens: {
    id: string;
    kind: 'access' | 'refresh';
    application: string;
    company_id: string;
    teammate_id: string;
    scopes: readonly Scope[];
    issued_at: number;
    expires_at: number;
  }[];
  limits: (LimitRow & {
    scope: string;
    burst_limit: number;
    burst_remaining: number;
    burst_reset_at: number | null;
  })[];
  /** Buckets of guards whose window is open. */
  guards: (LimitRow & { scope: string; guard: string; tier: string; bucket: string })[];
  call_limits: { application: string; limit: number; remaining: number; reset_at: number }[];
}

/** What a sandbox starts with, and goes back to by a reset. */
export interface Seed {
  now?: Moment | undefined;
  frozen?: boolean | undefined;
  /** In place of the three companies at start. */
  companies?: readonly CompanySpec[] | undefined;
  /** Beside the default application; one with its client id takes its place. */
  applications?: readonly ApplicationSpec[] | undefined;
  faults?: readonly FaultOrder[] | undefined;
  guards?: readonly GuardSpec[] | undefined;
}

/** How a sandbox is made. */
export interface SandboxOptions {
  /** 0, the default, takes a free one. */
  port?: number | undefined;
  /** Where it listens; 127.0.0.1 by default. Another than a loopback address takes {@link expose}. */
  host?: string | undefined;
  /** Said in words, it may listen beyond this machine: everybody who reaches it controls it, without a password. */
  expose?: typeof EXPOSE_WORDS | undefined;
  /** The origin that clients reach it at, where a proxy stands before it: `https://sandbox.example`. */
  publicUrl?: string | undefined;
  /** What it starts with, or the path of a JSON file that says so. */
  seed?: Seed | string | undefined;
  readings?: Partial<Readings> | undefined;
  /** Length of the rate-limit window in milliseconds; 60,000 by default. */
  windowMs?: number | undefined;
  /** Other tiers and limits of guards than the contract's: its reading of two of them may be wrong. */
  guards?: Partial<GuardRules> | undefined;
  /** Holds back each API answer, in milliseconds; 0 by default. */
  latencyMs?: number | undefined;
  /** How long an application's server may take to answer a call, in real milliseconds; 5,000 by default. */
  callTimeoutMs?: number | undefined;
  /** Further addresses of the application at start, beside those of an app on port 3000 of this machine. */
  redirectUris?: readonly string[] | undefined;
  /** Where the clock starts, in ms since 1970; real time by default. */
  now?: number | undefined;
  /** Keeps the tokens that are valid when it ends for the next start; without it they end with the sandbox. */
  tokensFile?: string | undefined;
  /** Told of every answer of the API and the OAuth routes, but for those that an ordered fault replaces. */
  onAnswer?: ((answered: Answered) => void) | undefined;
}

/** An answer of the service itself, before any ordered fault touches it. */
export interface Answered {
  method: string;
  /** As the client reached it. */
  url: string;
  answer: { status: number; headers: Readonly<Record<string, string>>; body: { toString(): string } };
}

/** Where a sandbox is reached. */
export interface Addresses {
  /** Of this machine, whatever the public address is. */
  origin: string;
  /** `{base_url}` */
  apiUrl: string;
  /** `{auth_url}` */
  authUrl: string;
}

/** An application by its client id or as an object. */
export type ApplicationRef = string | { readonly client_id: string };

/** A teammate by id or as an object; a company stands for its first administrator. */
export type TeammateRef = string | { readonly id: string };

/**
 * A running sandbox. What cannot be done throws an Error with the words of the control interface, and its `status`.
 */
export interface Sandbox extends Addresses {
  /** The application at start. */
  application: Credentials;
  /** Whether others than this machine can reach it. */
  exposed: boolean;
  /** Stops at once, also with connections open. */
  close(): Promise<void>;
  /** Adds a company. */
  company(spec: CompanySpec): Company;
  /** All companies, oldest first. */
  companies(): Company[];
  /** Registers an application. */
  register(spec: ApplicationSpec): Application;
  /**
   * A teammate's consent without a browser: the code, and the address that the browser would be sent to.
   * By default for {@link application}, by an administrator of the first company, to the first redirect address.
   */
  authorize(
    application?: ApplicationRef,
    teammate?: TeammateRef,
    request?: { redirectUri?: string; state?: string },
  ): { code: string; url: string };
  /** The tokens that such a consent gives. */
  tokens(application?: ApplicationRef, teammate?: TeammateRef): TokenAnswer;
  /** The service's clock, in ms since 1970; every call answers where it stands then. */
  clock: {
    now(): number;
    advance(ms: number): number;
    set(at: Moment | Date): number;
    /** Stops it where it stands, or at a moment. */
    freeze(at?: Moment | Date): number;
    /** Lets it run on. */
    run(): number;
  };
  faults: {
    /** Orders a fault, and answers its id. */
    order(order: FaultOrder): string;
    list(): FaultRow[];
    remove(id: string): void;
    clear(): void;
  };
  guards: { add(guard: GuardSpec): void; clear(): void };
  /** Deletes, changes, creates and reorders records of a company, in this order. */
  changeRecords(companyId: string, changes: RecordChanges): ChangedRecords;
  /** The journal: requests with a number above `after`, oldest first. */
  requests(after?: number): JournalRow[];
  state(): State;
  /** Keeps everything as it is, and answers the snapshot's id. */
  snapshot(): string;
  /** Goes back to a snapshot, as often as you like. */
  restore(id: string): void;
  /** Writes everything as it is to a file, for {@link load}. */
  save(file: string): void;
  /** Goes on from a file that {@link save} wrote. */
  load(file: string): void;
  /** Back to the start. */
  reset(): void;
}
