import { isIPv4 } from 'node:net';
import { z } from 'zod';
import { AUTHORIZATION_CALL_LIMIT } from '../contract/limits.ts';
import { Problem } from './http/answer.ts';
import { readBody } from './http/call.ts';
import { tooManyRequests } from './limits/limiter.ts';
import { type Counted, countOne, openWindow } from './limits/window.ts';
import type { Application, JournalRow, State } from './types.ts';
import type { World } from './world.ts';

const ANSWER_MAX_BYTES = 16 * 1024;
const NAME_MAX = 200;
const ADDRESS_MAX = 500;
const CALLS_KEPT = 10_000;

type ChannelIdentity = Record<'name' | 'address', string>;

/** Reasons why a server gave no name and address, by the outcome of the call. */
const FAILURES = {
  inactive: () => 'says that the token is not active',
  'not understood': () => 'answered something else than a JSON object with active, name and address',
  'wrong status': ({ status }) => `answered with the status ${status}`,
  redirect: () => 'answered with a redirect, which is not followed',
  'too large': () => 'answered too much',
  timeout: ({ timeoutMs }) => `did not answer within ${timeoutMs} milliseconds`,
  unreachable: () => 'could not be reached',
} satisfies Record<string, (call: { status: number | null; timeoutMs: number }) => string>;

type Failure = keyof typeof FAILURES;

/** A row of `GET /_sandbox/calls`: one call, or one that the limit forbade. */
interface CallRow extends Pick<JournalRow, 'n' | 'at' | 'duration_ms'> {
  /** The application's client id. */
  application: string;
  company_id: string;
  /** Without a query, which may hold a secret. */
  url: string;
  /** Of the answer; null when there was none. */
  status: number | null;
  outcome: 'active' | 'limit' | Failure;
}

/**
 * The service's calls to the servers of applications: the newest 10,000, without secrets, and their limit (Limits,
 * "Other rate limits": 600 a minute). The specification does not say how the limit groups them: here each application's
 * server has its own, for all companies. A window is fixed and starts with its first call; there is no burst.
 */
export class OutgoingCalls {
  /** Calls counted in a window, by client id of the application. A snapshot holds them. */
  state = new Map<string, Counted>();
  readonly #windowMs: number;
  readonly #rows: CallRow[] = [];

  /** @param windowMs length of the window in milliseconds */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
  }

  /**
   * Counts a call of an application (its client id), if it is allowed; `now` in ms since 1970.
   *
   * @returns 0 for an allowed call, otherwise the milliseconds until it is
   */
  take(application: string, now: number): number {
    const counted = this.state.get(application);
    const open = openWindow(counted, this.#windowMs, now);
    if (open?.used === AUTHORIZATION_CALL_LIMIT) return open.start + this.#windowMs - now;
    this.state.set(application, countOne(counted, this.#windowMs, now));
    return 0;
  }

  /** The limits whose window is open. */
  limits(now: number): State['call_limits'] {
    const limit = AUTHORIZATION_CALL_LIMIT;
    return [...this.state].flatMap(([application, counted]) => {
      const open = openWindow(counted, this.#windowMs, now);
      if (open === undefined) return [];
      return { application, limit, remaining: limit - open.used, reset_at: open.start + this.#windowMs };
    });
  }

  add(call: Omit<CallRow, 'n'>): void {
    this.#rows.push({ n: (this.#rows.at(-1)?.n ?? 0) + 1, ...call });
    if (this.#rows.length > CALLS_KEPT) this.#rows.shift();
  }

  /** The rows with a number above `after`, oldest first; numbers start with 1. */
  after(after: number): CallRow[] {
    return this.#rows.filter(({ n }) => n > after);
  }
}

/**
 * Whether the sandbox may call this address: plain HTTP to this machine, by a name that needs no resolver, without
 * credentials in it.
 */
export function isIntrospectionUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  // Parsed: 127.1 and 0x7f000001 are written out as 127.0.0.1, and a name in capitals is in small letters.
  const { protocol, hostname, username, password, hash } = new URL(text);
  const isLoopback = isIPv4(hostname)
    ? hostname.startsWith('127.')
    : ['localhost', '[::1]'].includes(hostname);
  return protocol === 'http:' && isLoopback && `${username}${password}${hash}` === '';
}

const reply = z.discriminatedUnion('active', [
  z.looseObject({ active: z.literal(false) }),
  z.looseObject({
    active: z.literal(true),
    name: z.string().trim().min(1).max(NAME_MAX),
    address: z.string().trim().min(1).max(ADDRESS_MAX),
  }),
]);

function understand(status: number, text: string): ChannelIdentity | Failure {
  if (status >= 300 && status < 400) return 'redirect';
  if (status !== 200) return 'wrong status';
  try {
    const answer = reply.parse(JSON.parse(text));
    return answer.active ? { name: answer.name, address: answer.address } : 'inactive';
  } catch {
    return 'not understood';
  }
}

/**
 * Asks an application's server about a token. The specification does not show how (Authentication, 10), so it is as in
 * RFC 7662, section 2: a form with the token, and the application's Basic credentials.
 */
async function ask(
  { client_id, client_secret }: Application,
  url: URL,
  token: string,
  timeoutMs: number,
): Promise<{ status: number | null; result: ChannelIdentity | Failure }> {
  // As for the token route: not form-encoded before (Authentication, 5).
  const authorization = `Basic ${Buffer.from(`${client_id}:${client_secret}`).toString('base64')}`;
  const body = new URLSearchParams({ token });
  const headers = { authorization, accept: 'application/json' };
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const answer = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal });
    const text = await readBody(answer.body ?? [], ANSWER_MAX_BYTES);
    return { status: answer.status, result: understand(answer.status, text.toString('utf8')) };
  } catch (error) {
    const unanswered = signal.aborted ? 'timeout' : 'unreachable';
    return { status: null, result: error instanceof Problem ? 'too large' : unanswered };
  }
}

/**
 * The name and address that an application's server gives a channel (Authentication, 10), asked within the limit for
 * such calls.
 *
 * Throws a {@link Problem}: 422 when the server gives none, 429 when it was called 600 times in this minute (Limits,
 * "Other rate limits"). A client that heeds `retry-after` of the other limits waits here too.
 */
export async function introspect(
  { clock, settings, calls }: World,
  application: Application,
  url: URL,
  company_id: string,
  token: string,
): Promise<ChannelIdentity> {
  const { client_id, name } = application;
  const { callTimeoutMs: timeoutMs } = settings;
  const call = { at: clock.now(), application: client_id, company_id, url: url.origin + url.pathname };
  const wait = calls.take(client_id, call.at);
  if (wait > 0) {
    calls.add({ ...call, status: null, outcome: 'limit', duration_ms: 0 });
    throw tooManyRequests(`Rate limit of calls to the server of ${name}`, wait);
  }
  const startedAt = performance.now();
  const { status, result } = await ask(application, url, token, timeoutMs);
  const duration_ms = Math.round((performance.now() - startedAt) * 10) / 10;
  calls.add({ ...call, status, outcome: typeof result === 'string' ? result : 'active', duration_ms });
  if (typeof result !== 'string') return result;
  const failure = FAILURES[result]({ status, timeoutMs });
  throw new Problem(422, `settings.token: the server of ${name}, which names this channel, ${failure}.`);
}
