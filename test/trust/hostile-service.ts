import {
  createServer,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  request,
  type ServerResponse,
} from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll } from 'vitest';
import { HEADER } from '../../src/contract/headers.ts';

/** Where the list is that is answered in the service's place. */
const LIST = '/api/contacts';
const IDENTITY = '/api/me';

/** One request for a page of contacts. */
export interface HostileTurn {
  /** Which one of its company it is, from 1. */
  count: number;
  url: URL;
  response: ServerResponse;
}

/** A service that hands everything on, but answers for the contacts of some companies what it likes. */
export interface HostileService {
  origin: string;
  /** Hands on to this origin from now on. */
  lead(target: string): void;
  /** Answers a company's requests for contacts itself from now on, whatever page they are for. */
  answer(companyId: string, respond: (turn: HostileTurn) => void): void;
  /** Hands a company's requests on again. */
  relent(companyId: string): void;
  /** Paths and queries that a company's contacts were asked for by, as they came, while they were not handed on. */
  asked(companyId: string): string[];
}

/** Headers of a good answer with plenty of the limit left. */
export function goodHeaders(further: OutgoingHttpHeaders = {}): OutgoingHttpHeaders {
  return {
    'content-type': 'application/json',
    [HEADER.limit]: '120',
    [HEADER.remaining]: '110',
    [HEADER.reset]: String(Date.now() / 1_000 + 1),
    ...further,
  };
}

/** Sends a page of contacts. */
export function sendPage(
  response: ServerResponse,
  ids: readonly string[],
  next: unknown,
  further: OutgoingHttpHeaders = {},
): void {
  const page = { _pagination: { next }, _results: ids.map((id) => ({ id, name: `Contact ${id}` })) };
  response.writeHead(200, goodHeaders(further)).end(JSON.stringify(page));
}

/** Starts a hostile service; it ends when the test file is through. */
export async function startHostileService(): Promise<HostileService> {
  /** Whose token it is, as the service said itself. */
  const companies = new Map<string, string>();
  const responders = new Map<string, (turn: HostileTurn) => void>();
  const asked = new Map<string, string[]>();
  let target = '';

  const server = createServer((incoming, response) => {
    const url = new URL(incoming.url ?? '/', origin);
    const companyId = companies.get(incoming.headers.authorization ?? '') ?? '';
    const respond = url.pathname === LIST ? responders.get(companyId) : undefined;
    if (respond === undefined) return handOn(incoming, response, url);
    const addresses = asked.get(companyId) ?? [];
    asked.set(companyId, addresses);
    addresses.push(incoming.url ?? '');
    response.on('error', () => undefined);
    respond({ count: addresses.length, url, response });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  afterAll(() => server.close().closeAllConnections());
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  function handOn(incoming: IncomingMessage, response: ServerResponse, url: URL): void {
    const { method = 'GET', headers } = incoming;
    const onward = request(new URL(url.pathname + url.search, target), { method, headers }, (answer) => {
      if (url.pathname === IDENTITY) {
        let text = '';
        answer.on('data', (chunk) => {
          text += chunk;
        });
        answer.on('end', () => companies.set(headers.authorization ?? '', JSON.parse(text).id));
      }
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    incoming.pipe(onward);
  }

  return {
    origin,
    lead: (to) => {
      target = to;
    },
    answer: (companyId, respond) => responders.set(companyId, respond),
    relent: (companyId) => responders.delete(companyId),
    asked: (companyId) => asked.get(companyId) ?? [],
  };
}
