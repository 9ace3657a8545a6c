import type { RecordChanges } from '../state/change-records.ts';

/** Which requests a fault is for; what is left out matches any. */
export interface FaultMatch {
  method?: string | undefined;
  /** Literal, or with the specification's placeholders. */
  path?: string | undefined;
  company_id?: string | undefined;
  /** Of the application that asks; API tokens have none. */
  client_id?: string | undefined;
  /** Begins with the so-many-th matching request from the order on, the first being 1; those before it go well. */
  nth?: number | undefined;
}

/** Small pieces that a body goes out in. */
export interface Drip {
  /** Size of a piece. */
  bytes: number;
  /** Real milliseconds between two pieces. */
  every_ms: number;
}

/** What goes wrong. */
export interface Fault {
  /** Answered in place of what the request would have got; it then takes no effect, but counts for the limit. */
  status?: number | undefined;
  /** In place of the answer's body: a string as it is (it need not be JSON), anything else as JSON. */
  body?: unknown;
  /** Added to the answer's headers, or in place of them, also of the five; null leaves one out. */
  headers?: Record<string, string | null> | undefined;
  /** The answer is held back this long, in real milliseconds; the request took effect before. */
  delay_ms?: number | undefined;
  /** Closes the connection before or after the request took effect. */
  drop?: 'before' | 'after' | undefined;
  /** Only so many bytes of the body are sent; with `drop: "after"`, under the full length, and then it closes. */
  truncate?: number | undefined;
  /** The head goes out at once, the body in small pieces. */
  drip?: Drip | undefined;
  /** Once the request took effect, the access token that made it is revoked, or all that was granted with it. */
  revoke?: 'access_token' | 'grant' | undefined;
  /** Once the request took effect, records of the company change: what happens to a list while someone pages. */
  records?: RecordChanges | undefined;
}

/** What a request is known by, to match faults with. */
export interface FaultTarget {
  method: string;
  path: string;
  /** Pattern of the API's route that serves it; undefined when there is none, or the request does not get so far. */
  route: string | undefined;
  companyId: string | undefined;
  /** The application's client id. */
  application: string | undefined;
}
