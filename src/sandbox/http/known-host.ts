import { isIP } from 'node:net';
import type { Host } from '../world.ts';

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
export function isKnownHost(host: string | undefined, { exposed, publicUrl }: Host): boolean {
  if (isLoopbackHost(host)) return true;
  if (publicUrl !== undefined && host?.toLowerCase() === new URL(publicUrl).host) return true;
  if (!exposed || host === undefined) return false;
  const name = host.replace(/:\d{1,5}$/, '');
  return isIP(name.replace(/^\[(.*)\]$/, '$1')) !== 0 || PRIVATE_NAME.test(name);
}
