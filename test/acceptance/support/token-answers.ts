import { once } from 'node:events';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';
import { request } from 'undici';
import { afterAll } from 'vitest';
import { findFreePort } from '../../support/free-port.ts';
import type { World } from './world.ts';

/** A token response. */
export type TokenAnswer = Record<string, unknown>;

/**
 * Puts a proxy between the app and the sandbox's OAuth routes that edits what the token route grants. The app's
 * processes that start afterwards use it.
 *
 * @param edit gets each granted answer, and returns what the app shall get instead
 */
export async function editTokenAnswers(world: World, edit: (answer: TokenAnswer) => TokenAnswer) {
  const server = createServer(async (incoming, outgoing) => {
    const { method = 'GET', headers, url = '/' } = incoming;
    const answer = await request(`${world.sandbox.origin}${url}`, {
      method: method as 'GET',
      headers: { ...headers, host: new URL(world.sandbox.origin).host, connection: 'close' },
      body: method === 'POST' ? await buffer(incoming) : null,
    });
    let body = await answer.body.text();
    if (answer.statusCode === 200 && url.endsWith('/oauth/token'))
      body = JSON.stringify(edit(JSON.parse(body)));
    for (const name of ['date', 'content-type', 'location']) {
      const value = answer.headers[name];
      if (value !== undefined) outgoing.setHeader(name, value);
    }
    outgoing.writeHead(answer.statusCode).end(body);
  }).listen(await findFreePort(), '127.0.0.1');
  await once(server, 'listening');
  afterAll(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  world.env.SERVICE_AUTH_URL = `http://127.0.0.1:${port}/auth`;
}
