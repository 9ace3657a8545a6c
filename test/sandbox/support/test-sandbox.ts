import { afterEach } from 'vitest';
import type * as Types from '../../../src/sandbox/types.ts';
import type { Credentials, JournalRow, Sandbox, SandboxOptions } from '../../../src/sandbox/types.ts';
import { createCheckedSandbox, descriptionOf } from './checked-sandbox.ts';

export type { Credentials } from '../../../src/sandbox/types.ts';

export type Company = Types.Company & { counts: { contacts: number; conversations: number } };

export type State = Omit<Types.State, 'companies'> & { companies: Company[] };

/** An answer of the API, read. */
export interface ApiAnswer<T> {
  status: number;
  headers: Headers;
  body: T;
}

/** A moment in the middle of a second, to notice rounding. */
export const START_MS = Date.UTC(2027, 2, 14, 10, 30, 15, 250);

export function basic({ client_id, client_secret }: Credentials): string {
  return `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`;
}

/** A sandbox with the calls that tests make of it. */
export class TestSandbox {
  readonly sandbox: Sandbox;

  constructor(sandbox: Sandbox) {
    this.sandbox = sandbox;
  }

  state(): State {
    return this.sandbox.state() as State;
  }

  /** A request to the control interface, whatever comes of it. */
  control(path: string, body?: unknown, method = 'POST'): Promise<Response> {
    return fetch(`${this.sandbox.origin}/_sandbox/${path}`, {
      method,
      headers: { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** A request to the control interface that must work. */
  async done<T>(path: string, body?: unknown, method = 'POST'): Promise<T> {
    const response = await this.control(path, body, method);
    if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** Freezes the clock at a moment. */
  freeze(at = START_MS): void {
    this.sandbox.clock.freeze(at);
  }

  advance(ms: number): void {
    this.sandbox.clock.advance(ms);
  }

  company(spec: object = {}): Company {
    return this.sandbox.company({ name: 'Test company', plan: 'starter', ...spec }) as Company;
  }

  application(spec: object = {}): Credentials {
    return this.sandbox.register({
      name: 'Other app',
      redirect_uris: ['http://other.example/back'],
      ...spec,
    });
  }

  journal(after = 0): JournalRow[] {
    return this.sandbox.requests(after);
  }

  /**
   * A request to the API with a JSON body, if one is given, and its answer, read; `path` may be a full URL.
   * Throws an Error when the API takes a body that is not as the description says.
   */
  async call<T = Record<string, unknown>>(
    method: string,
    path: string,
    token: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<ApiAnswer<T>> {
    const url = path.startsWith('http') ? path : `${this.sandbox.apiUrl}${path}`;
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const response = await fetch(url, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...headers },
      ...(sent === undefined ? {} : { body: sent }),
    });
    const problems = response.ok && sent ? descriptionOf().bodyProblems(method, url, sent) : [];
    if (problems.length > 0)
      throw new Error(`${method} ${url} took a body that is not as described: ${problems}`);
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: (text && JSON.parse(text)) as T };
  }

  /** A request to the API; `path` may be a full URL. */
  api(path: string, token: string, init: RequestInit = {}): Promise<Response> {
    const url = path.startsWith('http') ? path : `${this.sandbox.apiUrl}${path}`;
    return fetch(url, { ...init, headers: { authorization: `Bearer ${token}` } });
  }

  authorizeUrl(parameters: Record<string, string> = {}): URL {
    const { client_id, redirect_uris } = this.sandbox.application;
    const url = new URL(`${this.sandbox.authUrl}/oauth/authorize`);
    const query = { response_type: 'code', client_id, redirect_uri: redirect_uris[0] ?? '', ...parameters };
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
    return url;
  }

  /** Sends the consent form. */
  decide(form: Record<string, string>, parameters: Record<string, string> = {}): Promise<Response> {
    return fetch(this.authorizeUrl(parameters), {
      method: 'POST',
      body: new URLSearchParams(form),
      redirect: 'manual',
    });
  }

  /** A code for an application: of a teammate, or of the administrator of a company. */
  code(teammate: { id: string }, application: Credentials = this.sandbox.application): string {
    return this.sandbox.authorize(application, teammate).code;
  }

  /** Tokens that such a code gives. */
  install(teammate: { id: string }, application: Credentials = this.sandbox.application) {
    return this.sandbox.tokens(application, teammate);
  }

  /** A request to the token route with any body, a form by default, and its answer, read. */
  async token(
    body: Record<string, string> | string,
    authorization: string | null = basic(this.sandbox.application),
    type = 'application/x-www-form-urlencoded',
  ): Promise<ApiAnswer<Types.TokenAnswer & { error?: string; error_description?: string }>> {
    const response = await fetch(`${this.sandbox.authUrl}/oauth/token`, {
      method: 'POST',
      headers: { 'content-type': type, ...(authorization !== null && { authorization }) },
      body: typeof body === 'string' ? body : new URLSearchParams(body).toString(),
    });
    return { status: response.status, headers: response.headers, body: JSON.parse(await response.text()) };
  }

  exchange(code: string, application: Credentials = this.sandbox.application) {
    const redirect_uri = application.redirect_uris[0] ?? '';
    return this.token({ grant_type: 'authorization_code', code, redirect_uri }, basic(application));
  }

  refresh(refresh_token: string, application: Credentials = this.sandbox.application) {
    return this.token({ grant_type: 'refresh_token', refresh_token }, basic(application));
  }

  /** Statuses of so many requests, one after the other. */
  async statuses(count: number, path: string, token: string): Promise<number[]> {
    const statuses: number[] = [];
    for (let request = 0; request < count; request++) {
      const response = await this.api(path, token);
      await response.arrayBuffer();
      statuses.push(response.status);
    }
    return statuses;
  }
}

const running: Sandbox[] = [];

afterEach(async () => {
  await Promise.all(running.splice(0).map((sandbox) => sandbox.close()));
});

/** Starts a sandbox on a free port; it ends with the test. @param furtherTiers of guards that the test adds */
export async function startSandbox(
  options: SandboxOptions = {},
  furtherTiers: readonly string[] = [],
): Promise<TestSandbox> {
  const sandbox = await createCheckedSandbox(options, furtherTiers);
  running.push(sandbox);
  return new TestSandbox(sandbox);
}

/** Starts a sandbox whose clock stands at {@link START_MS}. */
export async function startFrozen(
  options: SandboxOptions = {},
  furtherTiers: readonly string[] = [],
): Promise<TestSandbox> {
  const sandbox = await startSandbox(options, furtherTiers);
  sandbox.freeze();
  return sandbox;
}

/** Starts a sandbox whose clock stands, with a company and the first of its tokens. */
export async function startCompany(spec: object = {}, ...how: Parameters<typeof startFrozen>) {
  const service = await startFrozen(...how);
  const company = service.company(spec);
  return { service, company, token: at(company.api_tokens, 0).token };
}

/** The item at this place; fails the test when there is none. */
export function at<T>(items: readonly T[], place: number): T {
  const item = items[place];
  if (item === undefined) throw new Error(`nothing at ${place} of ${items.length}`);
  return item;
}
