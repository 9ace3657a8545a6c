/** What came of a call to an application's server; all but the first are reasons why it gave nothing. */
export type CallOutcome =
  | 'active'
  | 'inactive'
  | 'not understood'
  | 'wrong status'
  | 'redirect'
  | 'too large'
  | 'timeout'
  | 'unreachable'
  | 'limit';

/** One call, or one that the limit forbade. */
export interface OutgoingCall {
  /** When it began, ms since 1970 on the service's clock. */
  at: number;
  /** The application's client id. */
  application: string;
  companyId: string;
  /** Without a query, as there may be a secret in it. */
  url: string;
  /** Of the answer; undefined when there was none. */
  status: number | undefined;
  outcome: CallOutcome;
  /** Real time, in milliseconds. */
  durationMs: number;
}

/** A row of `GET /_sandbox/calls`. */
export interface CallRow {
  n: number;
  at: number;
  application: string;
  company_id: string;
  url: string;
  status: number | null;
  outcome: CallOutcome;
  duration_ms: number;
}

const CAPACITY = 10_000;

/** Whom the service called: the newest 10,000 calls to applications' servers, without secrets. */
export class CallLog {
  readonly #rows: CallRow[] = [];
  #count = 0;

  add({ at, application, companyId, url, status, outcome, durationMs }: OutgoingCall): void {
    this.#count += 1;
    this.#rows.push({
      n: this.#count,
      at,
      application,
      company_id: companyId,
      url,
      status: status ?? null,
      outcome,
      duration_ms: Math.round(durationMs * 10) / 10,
    });
    if (this.#rows.length > CAPACITY) this.#rows.shift();
  }

  /** The rows with a number above `after`, oldest first; numbers start with 1. */
  after(after: number): CallRow[] {
    return this.#rows.filter(({ n }) => n > after);
  }
}
