import { request } from 'undici';
import type { Fault, FaultMatch } from '../../src/sandbox/faults/fault.ts';
import type { JournalRow } from '../../src/sandbox/journal.ts';

/** A company as the control interface describes it. */
export interface SandboxCompany {
  id: string;
  name: string;
  teammates: { id: string; name: string; is_admin: boolean }[];
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

  constructor(origin: string) {
    this.#origin = origin;
  }

  async state(): Promise<{ now: number; companies: SandboxCompany[] }> {
    return (await this.#call('GET', 'state')) as { now: number; companies: SandboxCompany[] };
  }

  async addCompany(company: {
    name: string;
    plan: string;
    contacts?: number;
    conversations?: number;
  }): Promise<SandboxCompany> {
    return (await this.#call('POST', 'companies', company)) as SandboxCompany;
  }

  async clock(change: { advance_ms?: number; set?: number | string; frozen?: boolean }): Promise<void> {
    await this.#call('POST', 'clock', change);
  }

  async fault(order: FaultOrder): Promise<void> {
    await this.#call('POST', 'faults', order);
  }

  /** The faults in order, with how often each was used. */
  async faults(): Promise<{ used: number }[]> {
    return (await this.#call('GET', 'faults')) as { used: number }[];
  }

  async clearFaults(): Promise<void> {
    await this.#call('DELETE', 'faults');
  }

  /** The journal, oldest first, without what came before entry `after`. */
  async requests(after = 0): Promise<JournalRow[]> {
    return (await this.#call('GET', `requests?after=${after}`)) as JournalRow[];
  }

  async #call(method: 'GET' | 'POST' | 'DELETE', path: string, body?: unknown): Promise<unknown> {
    const answer = await request(`${this.#origin}/_sandbox/${path}`, {
      method,
      ...(body === undefined
        ? {}
        : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`);
    return text === '' ? undefined : JSON.parse(text);
  }
}
