/** The shapes that the sandbox takes from outside: in a seed, by its handle and by the control interface. */

/** Lists whose records can be changed to order. */
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
  /** Real milliseconds until the answer. */
  duration_ms: number;
}
