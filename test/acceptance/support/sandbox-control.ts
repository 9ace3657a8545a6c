import { request } from 'undici';
import type { Fault, FaultMatch, JournalRow, Sandbox } from '../../../src/sandbox/types.ts';

/** A company as the control interface describes it. */
export interface SandboxCompany {
  id: string;
  name: string;
  teammates: { id: string; name: string; is_admin: boolean }[];
  api_tokens: readonly { token: string }[];
  counts: Record<string, number>;
}

/** A fault to order. */
export interface FaultOrder {
  match: FaultMatch;
  fault: Fault;
  times?: number;
}

/** The control interface of a sandbox. */
export class SandboxControl {
  readonly #origin: string;
  readonly #here: Sandbox | undefined;

  /** @param here the sandbox, if it runs in this process: long journals need not become text then */
  constructor(origin: string, here?: Sandbox) {
    this.#origin = origin;
    this.#here = here;
  }

  /** The service's time, in milliseconds since 1970, and its companies. */
  state(): Promise<{ now: number; frozen: boolean; companies: SandboxCompany[] }> {
    return this.call('GET', 'state');
  }

  addCompany(company: {
    name: string;
    plan?: string;
    contacts?: number;
    conversations?: number;
    order?: 'activity' | 'created';
  }): Promise<SandboxCompany> {
    return this.call('POST', 'companies', { plan: 'starter', contacts: 5, conversations: 5, ...company });
  }

  clock(change: { advance_ms?: number; set?: number | string; frozen?: boolean }): Promise<{ now: number }> {
    return this.call('POST', 'clock', change);
  }

  fault(order: FaultOrder): Promise<{ id: string }> {
    return this.call('POST', 'faults', order);
  }

  /** The faults in order, with how often each was used. */
  faults(): Promise<{ id: string; used: number }[]> {
    return this.call('GET', 'faults');
  }

  clearFaults(): Promise<unknown> {
    return this.call('DELETE', 'faults');
  }

  /** The journal, oldest first, without what came before entry `after`. */
  async requests(after = 0): Promise<JournalRow[]> {
    return this.#here?.requests(after) ?? this.call('GET', `requests?after=${after}`);
  }

  /** The number of the newest journal entry, to ask for what comes later. */
  async mark(): Promise<number> {
    return (await this.requests()).at(-1)?.n ?? 0;
  }

  /** Requests of the token route since a mark. */
  async tokenRequests(after = 0): Promise<JournalRow[]> {
    return (await this.requests(after)).filter(({ path }) => path === '/oauth/token');
  }

  /** Any call of the control interface. @throws Error with its answer where it refuses */
  async call<Value>(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<Value> {
    const answer = await request(`${this.#origin}/_sandbox/${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 400) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as Value;
  }
}
