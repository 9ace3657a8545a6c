import { createSandbox, type SandboxOptions } from '../../src/sandbox/sandbox.ts';

/** What a bench wants otherwise; see {@link SandboxOptions}. */
export type SandboxOrder = Pick<SandboxOptions, 'windowMs' | 'latencyMs' | 'redirectUris'>;

/** What the process of the sandbox has used so far. */
export interface Usage {
  /** Time on a processor, all threads of the process together, in milliseconds. */
  cpuMs: number;
  rssBytes: number;
  /** The JavaScript heap after a collection. */
  heapBytes: number;
}

/** What the process tells when it is up. */
export interface Up {
  origin: string;
  apiUrl: string;
  authUrl: string;
  application: { client_id: string; client_secret: string; redirect_uris: string[] };
}

function usage(): Usage {
  globalThis.gc?.();
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  return { cpuMs: (user + system) / 1000, rssBytes: rss, heapBytes: heapUsed };
}

const order = JSON.parse(process.argv[2] ?? '{}') as SandboxOrder;
const { origin, apiUrl, authUrl, application } = await createSandbox(order);
process.on('message', () => process.send?.(usage()));
process.on('disconnect', () => process.exit());
process.send?.({ origin, apiUrl, authUrl, application } satisfies Up);
