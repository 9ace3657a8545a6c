import {
  createServer,
  type IncomingMessage,
  type Server,
  type ServerResponse,
  STATUS_CODES,
} from 'node:http';
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { OAUTH_ROUTE } from '../../contract/routes.ts';
import { SANDBOX_DEFAULTS } from '../../contract/sandbox.ts';
import { prepareApi, withRate } from '../api/prepare-api.ts';
import { CONTROL_PATH, control } from '../control/control.ts';
import { prepareAuthorize } from '../oauth/authorize.ts';
import { prepareToken } from '../oauth/token.ts';
import { page } from '../pages/panel.ts';
import type { Host } from '../world.ts';
import { type Answer, errorAnswer, problemAnswer } from './answer.ts';
import { createCall, splitTarget } from './call.ts';
import { exchange, type Prepare } from './exchange.ts';
import { findRoute, type Route } from './router.ts';
import { send } from './send.ts';

/** Longer than clients keep an idle connection, so that they never write into one that is being closed. */
const KEEP_ALIVE_MS = 65_000;

/** The routes below `{auth_url}` (Endpoints, "OAuth routes"), and the one that the consent form posts to. */
const OAUTH_ROUTES: readonly Route<Prepare>[] = [
  { method: 'GET', path: OAUTH_ROUTE.authorize, handle: prepareAuthorize },
  { method: 'POST', path: OAUTH_ROUTE.authorize, handle: prepareAuthorize },
  { method: 'POST', path: OAUTH_ROUTE.token, handle: prepareToken },
];

const prepareOAuth: Prepare = async (world, call) =>
  findRoute(OAUTH_ROUTES, call.method, call.path).handle(world, call);

/** Requests that node's parser refuses, by its error's code (RFC 9110, section 15; RFC 6585, section 5). */
const UNREADABLE: Readonly<Record<string, readonly [status: number, message: string]>> = {
  HPE_HEADER_OVERFLOW: [431, 'The address and the headers have more than 16 KiB.'],
  HPE_INVALID_METHOD: [501, 'The method is not one of HTTP.'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'The request did not come to its end in time.'],
};

const LOOPBACK_HOST = /^(localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/** Endings that nobody can register in the public DNS (RFC 6762; RFC 6761; ICANN's private-use name). */
const PRIVATE_NAME = /^[a-z0-9_-]+$|\.(local|localhost|test|internal)$/i;

/** Whether a `Host` header names this machine. */
export function isLoopbackHost(host: string | undefined): boolean {
  return host !== undefined && LOOPBACK_HOST.test(host);
}

/**
 * Whether requests for this `Host` are answered. A page of the internet whose name was made to resolve to the sandbox's
 * address (DNS rebinding) would carry its own name here.
 *
 * A sandbox that listens beyond this machine also answers to IP addresses and names of a private network.
 */
function isKnownHost(host: string | undefined, { exposed, publicUrl }: Host): boolean {
  if (isLoopbackHost(host)) return true;
  if (host === undefined) return false;
  const { protocol, host: publicHost } = new URL(publicUrl ?? 'http://localhost');
  if (URL.parse(`${protocol}//${host}`)?.host === publicHost) return true;
  if (!exposed) return false;
  const name = host.replace(/:\d{1,5}$/, '');
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || PRIVATE_NAME.test(name);
}

function isBelow(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

async function dispatch(host: Host, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { apiPath, authPath } = SANDBOX_DEFAULTS;
  const { world, publicUrl } = host;
  const { path } = splitTarget(request.url ?? '/');
  const isApi = isBelow(path, apiPath);
  const callTo = (prefix: string) => createCall(request, prefix, publicUrl);
  const answer = (given: Answer) => send(response, given, world.clock.now());
  if (!isKnownHost(request.headers.host, host)) {
    const refusal = errorAnswer(403, 'The sandbox answers to names of this machine alone.');
    return answer(isApi ? withRate(world, refusal) : refusal);
  }
  if (isApi) return exchange(world, callTo(apiPath), response, prepareApi, world.settings.latencyMs);
  // Nothing is here, and it is not worth a line of the journal: clients ask here for the time in `Date`.
  if (path === authPath) return answer(errorAnswer(404, 'There is nothing here.'));
  if (isBelow(path, authPath)) return exchange(world, callTo(authPath), response, prepareOAuth, 0);
  const own = async () =>
    isBelow(path, CONTROL_PATH) ? control(host, callTo(CONTROL_PATH)) : page(host, callTo(''));
  answer(await own().catch(problemAnswer));
}

function fail(host: Host, response: ServerResponse, error: unknown): void {
  // A client that went away in the middle of its body is no failure of ours.
  if (response.destroyed) return;
  process.stderr.write(`sandbox: ${error instanceof Error ? error.stack : String(error)}\n`);
  if (response.headersSent) response.destroy();
  else send(response, errorAnswer(500, 'The sandbox has a fault of its own.'), host.world.clock.now());
}

/** The newest answer of each connection: unreadable bytes after a request must not bring a second one. */
const NEWEST = new WeakMap<Duplex, ServerResponse>();

/** Answers a request that never became one, in the service's form: written by hand, as node has no response for it. */
function refuseUnreadable({ world }: Host, error: NodeJS.ErrnoException, socket: Duplex): void {
  if (!socket.writable || NEWEST.get(socket)?.headersSent === true) return void socket.destroy();
  const [status, message] = UNREADABLE[error.code ?? ''] ?? [400, 'The request is not valid HTTP.'];
  const { headers, body } = withRate(world, errorAnswer(status, message, { connection: 'close' }));
  const date = new Date(world.clock.now()).toUTCString();
  const fields = { date, ...headers, 'content-length': body.length };
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.join('')}\r\n${body}`);
}

/** The sandbox's web server, not listening yet. */
export function createSandboxServer(host: Host): Server {
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    NEWEST.set(request.socket, response);
    response.once('close', () => NEWEST.delete(request.socket));
    dispatch(host, request, response).catch((error: unknown) => fail(host, response, error));
  };
  // Node would refuse a missing Host and an unknown Expect by itself, with an empty answer.
  const options = { keepAliveTimeout: KEEP_ALIVE_MS, requireHostHeader: false };
  const server = createServer(options, listener).on('checkExpectation', listener);
  return server.on('clientError', (error, socket) => refuseUnreadable(host, error, socket));
}
