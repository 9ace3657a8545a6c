import { once } from 'node:events';
import { type AddressInfo, isIP } from 'node:net';
import { SANDBOX_DEFAULTS } from '../contract/sandbox.ts';
import { Clock } from './clock.ts';
import { checkOptions, refuseProduction } from './environment.ts';
import { createHandle } from './handle.ts';
import { createSandboxServer, isLoopbackHost } from './http/server.ts';
import { plantSeed, readSeed } from './seed.ts';
import { keepTokens, restoreTokens, Snapshots } from './snapshots.ts';
import type { Sandbox, SandboxOptions } from './types.ts';
import { createWorld, type Host, settingsOf } from './world.ts';

export type * from './types.ts';

/** The address in a URL; this machine's name for an address that stands for all. */
function nameOf(address: string): string {
  if (address === '0.0.0.0' || address === '::') return SANDBOX_DEFAULTS.host;
  return isIP(address) === 6 ? `[${address}]` : address;
}

/**
 * Starts the service of the specification, in memory.
 *
 * @returns the running sandbox
 * Throws an Error with NODE_ENV=production, a RangeError for options that do not do (an address beyond this machine
 * without the words for it, a wrong seed), and node's error (`EADDRINUSE`) for a port in use.
 */
export async function createSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  refuseProduction();
  const { port = 0, host: address = SANDBOX_DEFAULTS.host, tokensFile } = options;
  const exposed = !isLoopbackHost(isIP(address) === 6 ? `[${address}]` : address);
  if (exposed && options.expose === undefined) {
    throw new RangeError(
      `The sandbox listens on this machine alone, not on ${address}, unless SANDBOX_EXPOSE says so in words.`,
    );
  }
  checkOptions(options);
  const publicUrl = options.publicUrl && new URL(options.publicUrl).origin;
  const seed = readSeed(options.seed);
  const settings = settingsOf(options);
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
