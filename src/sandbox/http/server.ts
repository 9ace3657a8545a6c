import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { SANDBOX_DEFAULTS } from '../../contract/sandbox.ts';
import { prepareApi, withRate } from '../api/prepare-api.ts';
import { CONTROL_PATH, control } from '../control/control.ts';
import type { Host } from '../host.ts';
import { prepareOAuth } from '../oauth/prepare-oauth.ts';
import { page } from '../pages/pages.ts';
import { type Answer, errorAnswer, problemAnswer } from './answer.ts';
import { createCall, splitTarget } from './call.ts';
import { exchange } from './exchange.ts';
import { isKnownHost } from './known-host.ts';
import { send } from './send.ts';

/** Longer than clients keep an idle connection, so that they never write into one that is being closed. */
const KEEP_ALIVE_MS = 65_000;

function isBelow(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

async function sendSoon(response: ServerResponse, host: Host, make: () => Promise<Answer>): Promise<void> {
  const answer = await make().catch(problemAnswer);
  send(response, answer, host.world.clock.now());
}

async function dispatch(host: Host, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { apiPath, authPath } = SANDBOX_DEFAULTS;
  const { world } = host;
  const { path } = splitTarget(request.url ?? '/');
  const isApi = isBelow(path, apiPath);
  if (!isKnownHost(request.headers.host, host.exposed)) {
    const refusal = errorAnswer(403, 'The sandbox answers to names of this machine alone.');
    return send(response, isApi ? withRate(world, refusal) : refusal, world.clock.now());
  }
  if (isApi) {
    return exchange(world, createCall(request, apiPath), response, prepareApi, world.settings.latencyMs);
  }
  // Nothing is here, and it is not worth a line of the journal: clients ask here for the time in `Date`.
  if (path === authPath) return send(response, errorAnswer(404, 'There is nothing here.'), world.clock.now());
  if (isBelow(path, authPath))
    return exchange(world, createCall(request, authPath), response, prepareOAuth, 0);
  if (isBelow(path, CONTROL_PATH)) {
    const call = createCall(request, CONTROL_PATH);
    return sendSoon(response, host, () => control(host, call));
  }
  return sendSoon(response, host, async () => page(host, createCall(request, '')));
}

function fail(host: Host, response: ServerResponse, error: unknown): void {
  // A client that went away in the middle of its body is no failure of ours.
  if (response.destroyed) return;
  process.stderr.write(`sandbox: ${error instanceof Error ? error.stack : String(error)}\n`);
  if (response.headersSent) response.destroy();
  else send(response, errorAnswer(500, 'The sandbox has a fault of its own.'), host.world.clock.now());
}

/** The sandbox's web server, not listening yet. */
export function createSandboxServer(host: Host): Server {
  const listener: RequestListener = (request, response) => {
    dispatch(host, request, response).catch((error: unknown) => fail(host, response, error));
  };
  return createServer({ keepAliveTimeout: KEEP_ALIVE_MS }, listener);
}
