import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import { afterEach } from 'vitest';

/** A request that the external service was sent. */
export interface Asked {
  method: string;
  url: string;
  headers: IncomingHttpHeaders;
  body: string;
}

/** An application's own server, which the service asks about channels. */
export interface IntrospectionServer {
  /** Of the introspection route. */
  url: string;
  port: number;
  asked: Asked[];
}

const running: Server[] = [];

afterEach(async () => {
  for (const server of running.splice(0)) {
    await new Promise((resolve) => {
      server.close(resolve);
      server.closeAllConnections();
    });
  }
});

/** Answers with JSON. */
export function answerJson(response: ServerResponse, value: unknown, status = 200): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
}

/** Starts a server that answers like this; it ends with the test. */
export async function startIntrospectionServer(
  answer: (response: ServerResponse) => void,
): Promise<IntrospectionServer> {
  const asked: Asked[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    asked.push({ method: request.method ?? '', url: request.url ?? '', headers: request.headers, body });
    answer(response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  running.push(server);
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return { url: `http://127.0.0.1:${port}/introspect`, port, asked };
}
