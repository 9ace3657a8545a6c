const LOOPBACK_HOST = /^(localhost|127(?:\.\d{1,3}){3}|\[::1\])(?::\d{1,5})?$/i;

/**
 * Whether a `Host` header names this machine. A page of the internet whose name was made to resolve to 127.0.0.1 (DNS
 * rebinding) would carry its own name here.
 */
export function isLoopbackHost(host: string | undefined): boolean {
  return host !== undefined && LOOPBACK_HOST.test(host);
}
