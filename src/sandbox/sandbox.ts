import type { Server } from 'node:http';
import { isIP } from 'node:net';
import { GUARDS, type GuardRules } from '../contract/guards.ts';
import { WINDOW_MS } from '../contract/limits.ts';
import { type EXPOSE_WORDS, SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import { Clock } from './clock.ts';
import { Snapshots } from './control/snapshots.ts';
import { refuseProduction } from './environment.ts';
import type { Addresses, Host } from './host.ts';
import { isLoopbackHost } from './http/known-host.ts';
import { createSandboxServer } from './http/server.ts';
import { keepTokens, restoreTokens } from './state/kept-tokens.ts';
import { type Answered, createWorld } from './world.ts';

/** How long an application's server may take to answer, unless another time is said. */
const CALL_TIMEOUT_MS = 5_000;

/** How a sandbox is made. */
export interface SandboxOptions {
  /** 0, the default, takes a free one. */
  port?: number;
  /** Where it listens; 127.0.0.1 by default. Another than a loopback address takes {@link expose}. */
  host?: string;
  /** Said in words, it may listen beyond this machine: whoever reaches it controls it, as it asks for no password. */
  expose?: typeof EXPOSE_WORDS;
  /** Length of the rate-limit window in milliseconds; 60,000 by default. */
  windowMs?: number;
  /** Other tiers and limits of guards than the contract's: its reading of two of them may be wrong. */
  guards?: Partial<GuardRules>;
  /** Holds back each API answer, in milliseconds; 0 by default. */
  latencyMs?: number;
  /** How long an application's server may take to answer a call, in real milliseconds; 5,000 by default. */
  callTimeoutMs?: number;
  /** Further addresses of the application at start, beside those of an app on port 3000 of this machine. */
  redirectUris?: readonly string[];
  /** Where the clock starts, in ms since 1970; real time by default. */
  now?: number;
  /** Keeps the tokens that are valid when it ends for the next start; without it they end with the sandbox. */
  tokensFile?: string;
  /** Told of every answer of the API and the OAuth routes, but for those that an ordered fault replaces. */
  onAnswer?: (answered: Answered) => void;
}

/** A running sandbox. */
export interface Sandbox extends Addresses {
  /** The application at start. */
  application: { client_id: string; client_secret: string; redirect_uris: string[] };
  /** Whether others than this machine can reach it. */
  exposed: boolean;
  /** Stops at once, also with connections open. */
  close(): Promise<void>;
}

/** The address in a URL; that of this machine for one that stands for all of its addresses. */
function nameOf(address: string): string {
  if (address === '0.0.0.0' || address === '::') return SANDBOX_DEFAULTS.host;
  return isIP(address) === 6 ? `[${address}]` : address;
}

function listen(server: Server, port: number, host: string): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, () => {
      server.off('error', reject);
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : port);
    });
  });
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeAllConnections();
  });
}

/**
 * Starts the service of the specification, in memory.
 *
 * @returns the running sandbox
 * Throws an Error with NODE_ENV=production, a RangeError for an address beyond this machine unless that was said in
 * words, and node's error (`EADDRINUSE`) for a port in use.
 */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  refuseProduction();
  const { port = 0, host: address = SANDBOX_DEFAULTS.host, windowMs = WINDOW_MS } = options;
  const { latencyMs = 0, redirectUris = [], callTimeoutMs = CALL_TIMEOUT_MS } = options;
  const exposed = !isLoopbackHost(isIP(address) === 6 ? `[${address}]` : address);
  if (exposed && options.expose === undefined) {
    throw new RangeError(
      `The sandbox listens on this machine alone, not on ${address}, unless SANDBOX_EXPOSE says so in words.`,
    );
  }
  const guards = { ...GUARDS, search: { ...GUARDS.search, windowMs }, ...options.guards };
  const { onAnswer } = options;
  const settings = { windowMs, latencyMs, callTimeoutMs, redirectUris, guards, onAnswer };
  const clock = new Clock(options.now);
  const { tokensFile } = options;
  const newWorld = () => {
    const world = createWorld(settings, clock);
    if (tokensFile !== undefined) keepTokens(world, tokensFile);
    return world;
  };
  const host: Host = {
    world: newWorld(),
    addresses: { origin: '', apiUrl: '', authUrl: '' },
    snapshots: new Snapshots(),
    exposed,
    resets: 0,
    reset() {
      host.resets += 1;
      clock.reset();
      host.world = newWorld();
      host.world.tokens.onIssue();
    },
  };
  if (tokensFile !== undefined) restoreTokens(host.world, tokensFile);
  const server = createSandboxServer(host);
  const origin = `http://${nameOf(address)}:${await listen(server, port, address)}`;
  host.addresses = {
    origin,
    apiUrl: `${origin}${SANDBOX_DEFAULTS.apiPath}`,
    authUrl: `${origin}${SANDBOX_DEFAULTS.authPath}`,
  };
  const { clientId: client_id, clientSecret: client_secret } = SANDBOX_DEFAULTS;
  const redirect_uris = [...(host.world.applications.get(client_id)?.redirectUris ?? [])];
  return {
    ...host.addresses,
    application: { client_id, client_secret, redirect_uris },
    exposed,
    close: () => close(server),
  };
}
