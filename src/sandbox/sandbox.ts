import { once } from 'node:events';
import { type AddressInfo, isIP } from 'node:net';
import { EXPOSE_WORDS, SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import { Clock } from './clock.ts';
import { checkOptions } from './environment.ts';
import { createHandle } from './handle.ts';
import { createSandboxServer, isLoopbackHost } from './http/server.ts';
import { plantSeed, readSeed } from './seed.ts';
import { keepTokens, restoreTokens, Snapshots } from './snapshots.ts';
import type { Sandbox, SandboxOptions } from './types.ts';
import { createWorld, type Host, settingsOf } from './world.ts';

export type * from './types.ts';

/** The host of a URL: an IPv6 address gets brackets, and an address for all interfaces becomes this machine's. */
function nameOf(address: string): string {
  if (address === '0.0.0.0' || address === '::') return SANDBOX_DEFAULTS.host;
  return isIP(address) === 6 ? `[${address}]` : address;
}

/**
 * Starts the service of the specification, in memory.
 *
 * @throws RangeError for wrong options or a wrong seed, with NODE_ENV=production, or beyond this machine without `expose`
 * @throws node's `EADDRINUSE` for a port in use
 */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  checkOptions(options);
  const { port = 0, host: address = SANDBOX_DEFAULTS.host, tokensFile } = options;
  const exposed = !isLoopbackHost(isIP(address) === 6 ? `[${address}]` : address);
  if (exposed && options.expose === undefined) {
    throw new RangeError(
      `The sandbox listens on this machine only. To listen on ${address}, set SANDBOX_EXPOSE=${EXPOSE_WORDS}.`,
    );
  }
  const publicUrl = options.publicUrl && new URL(options.publicUrl).origin;
  const seed = readSeed(options.seed);
  const { order = seed.order, strict = seed.strict } = options;
  const settings = settingsOf({ ...options, order, strict });
  const clock = new Clock(options.now);
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
    publicUrl,
    reset() {
      clock.reset();
      host.world = newWorld();
      plantSeed(host, seed);
      host.world.tokens.onIssue();
    },
  };
  plantSeed(host, seed);
  if (tokensFile !== undefined) restoreTokens(host.world, tokensFile);
  const server = createSandboxServer(host);
  await once(server.listen(port, address), 'listening');
  const origin = `http://${nameOf(address)}:${(server.address() as AddressInfo).port}`;
  const reached = publicUrl ?? origin;
  const { apiPath, authPath } = SANDBOX_DEFAULTS;
  host.addresses = { origin, apiUrl: reached + apiPath, authUrl: reached + authPath };
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  return Object.assign(createHandle(host), host.addresses, { exposed, close });
}
