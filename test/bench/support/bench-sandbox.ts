import { Agent, request } from 'undici';
import type { JournalRow } from '../../../src/sandbox/types.ts';
import type { SandboxOrder, Up, Usage } from '../sandbox-process.ts';
import { Child } from './child.ts';

/** A company, as far as benches look at it. */
export interface BenchCompany {
  id: string;
  name: string;
  teammates: { id: string; is_admin: boolean }[];
  api_tokens: { token: string }[];
}

/** An OAuth application's credentials. */
export type Credentials = Up['application'];

/** What the token route gave. */
export interface BenchGrant {
  accessToken: string;
  refreshToken: string;
  /** Milliseconds since 1970, by the service's clock. */
  accessExpiresAt: number;
}

/** Where apps of benches say that they live; nobody listens there. */
export const BENCH_REDIRECT_URI = 'http://127.0.0.1:9/oauth/callback';

/** A sandbox in a process of its own. What is asked of the control interface and of OAuth costs no latency. */
export class BenchSandbox {
  readonly #child: Child;
  readonly #agent = new Agent({ connections: 16, pipelining: 1 });
  readonly up: Up;

  private constructor(child: Child, up: Up) {
    this.#child = child;
    this.up = up;
  }

  /** @param order window and latency in milliseconds */
  static async start(order: SandboxOrder = {}): Promise<BenchSandbox> {
    const redirectUris = [BENCH_REDIRECT_URI, ...(order.redirectUris ?? [])];
    const child = new Child('sandbox-process.ts', ['--expose-gc'], { ...order, redirectUris });
    return new BenchSandbox(child, await child.said<Up>());
  }

  get pid(): number {
    return this.#child.pid;
  }

  usage(): Promise<Usage> {
    return this.#child.ask<Usage>({});
  }

  addCompany(spec: {
    name?: string;
    plan?: string;
    addon_rpm?: number;
    contacts: number;
    conversations: number;
  }): Promise<BenchCompany> {
    return this.post('companies', { name: 'Bench', plan: 'enterprise', ...spec });
  }

  addApplication(name: string): Promise<Credentials> {
    return this.post('applications', { name, redirect_uris: [BENCH_REDIRECT_URI] });
  }

  /** Moves the service's clock. @returns how far it is ahead of ours then, in milliseconds */
  async setClock(aheadMs: number): Promise<number> {
    const { now } = await this.post<{ now: number }>('clock', { set: Date.now() + aheadMs });
    return now - Date.now();
  }

  /** The journal from entry `after` on, oldest first; of the newest 100,000 requests. */
  async requests(after = 0): Promise<JournalRow[]> {
    return (await this.#json('GET', `_sandbox/requests?after=${after}`)) as JournalRow[];
  }

  /** A POST to the control interface. */
  async post<T>(path: string, body: object): Promise<T> {
    return (await this.#json('POST', `_sandbox/${path}`, JSON.stringify(body), {
      'content-type': 'application/json',
    })) as T;
  }

  /** What an application gets when an administrator of the company authorizes it, by HTTP. */
  async authorize(
    company: BenchCompany,
    application: Credentials = this.up.application,
  ): Promise<BenchGrant> {
    const { client_id, client_secret } = application;
    const redirect_uri = BENCH_REDIRECT_URI;
    const query = new URLSearchParams({ response_type: 'code', client_id, redirect_uri });
    const administrator = company.teammates.find(({ is_admin }) => is_admin);
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    const consent = await request(`${this.up.authUrl}/oauth/authorize?${query}`, {
      method: 'POST',
      headers: form,
      body: new URLSearchParams({ teammate_id: administrator?.id ?? '', decision: 'approve' }).toString(),
      dispatcher: this.#agent,
    });
    await consent.body.dump();
    const code = new URL(String(consent.headers.location)).searchParams.get('code') ?? '';
    const basic = Buffer.from(`${client_id}:${client_secret}`).toString('base64');
    const body = new URLSearchParams({ grant_type: 'authorization_code', code, redirect_uri }).toString();
    const path = `${new URL(this.up.authUrl).pathname.slice(1)}/oauth/token`;
    const granted = await this.#json('POST', path, body, { ...form, authorization: `Basic ${basic}` });
    const { access_token, refresh_token, expires_at } = granted as Record<string, string>;
    return {
      accessToken: access_token ?? '',
      refreshToken: refresh_token ?? '',
      accessExpiresAt: Number(expires_at) * 1_000,
    };
  }

  async end(): Promise<void> {
    this.#child.end();
    await this.#agent.destroy();
  }

  async #json(
    method: 'GET' | 'POST',
    path: string,
    body?: string,
    headers: Record<string, string> = {},
  ): Promise<unknown> {
    const answer = await request(`${this.up.origin}/${path}`, {
      method,
      headers,
      body: body ?? null,
      dispatcher: this.#agent,
    });
    const text = await answer.body.text();
    if (answer.statusCode >= 300) throw new Error(`${method} ${path}: ${answer.statusCode} ${text}`);
    return JSON.parse(text);
  }
}
