import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll } from 'vitest';

/** A request that came to the token route. */
export interface TokenRequest {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** A bare token route whose answers the test writes, byte by byte if it likes. */
export interface TokenServer {
  /** `{auth_url}` */
  url: string;
  requests: TokenRequest[];
  /** The questions for the time, and the `Date` that answers them. */
  timeRequests: TokenRequest[];
  date: string | undefined;
  answer: (response: ServerResponse) => void;
  /** Without a Date, unless the headers hold one. */
  answerJson(status: number, body: unknown, headers?: Record<string, string>): void;
  /** Every refresh is answered with at-1, at-2 …, and the refresh token that came, or with rt-1, rt-2 … */
  answerRefreshes(options?: { rotating?: boolean; withoutRefreshToken?: boolean }): void;
  /** The answer waits until the test says what it is. */
  holdAnswer(): { asked: Promise<void>; answer(status: number, body: object): void };
}

/** Starts one; it ends when the test file is through. */
export async function startTokenServer(): Promise<TokenServer> {
  const server = createServer(async (request, response) => {
    const { method = '', url = '', headers } = request;
    const asked = { method, url, headers, body: await text(request) };
    if (method === 'HEAD') {
      tokenServer.timeRequests.push(asked);
      response.sendDate = false;
      if (tokenServer.date !== undefined) response.setHeader('date', tokenServer.date);
      return response.end();
    }
    tokenServer.requests.push(asked);
    tokenServer.answer(response);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const tokenServer: TokenServer = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/auth`,
    requests: [],
    timeRequests: [],
    date: undefined,
    answer: (response) => response.end(),
    answerJson(status, body, headers = {}) {
      tokenServer.answer = (response) => sendJson(response, status, body, headers);
    },
    answerRefreshes({ rotating, withoutRefreshToken } = {}) {
      let n = 0;
      tokenServer.answer = (response) => {
        n++;
        const sent = new URLSearchParams(tokenServer.requests.at(-1)?.body).get('refresh_token');
        const refreshToken = withoutRefreshToken ? {} : { refresh_token: rotating ? `rt-${n}` : sent };
        sendJson(response, 200, { access_token: `at-${n}`, ...refreshToken, token_type: 'Bearer' });
      };
    },
    holdAnswer() {
      const asked = Promise.withResolvers<void>();
      const answer = Promise.withResolvers<{ status: number; body: object }>();
      tokenServer.answer = async (response) => {
        asked.resolve();
        const { status, body } = await answer.promise;
        sendJson(response, status, body);
      };
      return { asked: asked.promise, answer: (status, body) => answer.resolve({ status, body }) };
    },
  };
  return tokenServer;
}

function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
) {
  response.sendDate = false;
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}
