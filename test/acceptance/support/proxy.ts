import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll } from 'vitest';

/** One request of the API that a test answers in the service's place. */
export interface Turn {
  /** Which one of its company and path it is, from 1. */
  count: number;
  url: URL;
  response: ServerResponse;
}

/** A server before the sandbox that hands everything on, but answers what a test wants to answer itself. */
export interface Proxy {
  origin: string;
  apiUrl: string;
  /** Hands on to this origin from now on. */
  lead(target: string): void;
  /** Answers a company's requests of a path below `{base_url}` (such as `/contacts`) itself from now on. */
  answer(companyId: string, path: string, respond: (turn: Turn) => void): void;
  /** Hands all of a company's requests on again. */
  relent(companyId: string): void;
  /** Paths and queries that a company asked for, as they came. */
  asked(companyId: string): string[];
}

/** Headers of a good answer with plenty of the limit left. */
export function goodHeaders(further: Record<string, string> = {}): Record<string, string> {
  return {
    'content-type': 'application/json',
    'x-ratelimit-limit': '120',
    'x-ratelimit-remaining': '110',
    'x-ratelimit-reset': String(Date.now() / 1_000 + 1),
    ...further,
  };
}

/** The text of a page whose records are these JSON texts. */
export function pageOf(records: readonly string[], next: unknown = null): string {
  return `{"_pagination":{"next":${JSON.stringify(next)}},"_results":[${records.join(',')}]}`;
}

/** Starts a proxy; lead it to the sandbox before the app starts. It ends when the test file is through. */
export async function startProxy(): Promise<Proxy> {
  let target = '';
  /** Whose access token it is, as `/me` said. */
  const companies = new Map<string, string>();
  const responders = new Map<string, Map<string, (turn: Turn) => void>>();
  const asked = new Map<string, string[]>();

  const server = createServer((incoming, response) => {
    response.on('error', () => undefined);
    const url = new URL(incoming.url ?? '/', origin);
    const companyId = companies.get(incoming.headers.authorization ?? '') ?? '';
    const addresses = asked.get(companyId) ?? [];
    asked.set(companyId, [...addresses, incoming.url ?? '']);
    const path = url.pathname.replace(/^\/api/, '');
    const respond = responders.get(companyId)?.get(path);
    if (respond === undefined) return handOn(incoming, response);
    const before = addresses.filter((address) => new URL(address, origin).pathname === url.pathname);
    respond({ count: before.length + 1, url, response });
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterAll(() => server.close().closeAllConnections());
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  function handOn(incoming: IncomingMessage, response: ServerResponse): void {
    const { method = 'GET', headers, url = '/' } = incoming;
    const onward = request(target + url, { method, headers }, async (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      if (url !== '/api/me') return answer.pipe(response);
      const body = await text(answer);
      if (answer.statusCode === 200) companies.set(headers.authorization ?? '', JSON.parse(body).id);
      response.end(body);
    });
    onward.on('error', () => response.destroy());
    incoming.pipe(onward);
  }

  return {
    origin,
    apiUrl: `${origin}/api`,
    lead: (to) => {
      target = to;
    },
    answer: (companyId, path, respond) => {
      const own = responders.get(companyId) ?? new Map();
      responders.set(companyId, own.set(path, respond));
    },
    relent: (companyId) => responders.delete(companyId),
    asked: (companyId) => asked.get(companyId) ?? [],
  };
}
