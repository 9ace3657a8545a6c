import { isIPv4 } from 'node:net';

function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' || hostname === '[::1]' || (isIPv4(hostname) && hostname.startsWith('127.'))
  );
}

/**
 * Whether the sandbox may call this address: plain HTTP to this machine, by a name that needs no resolver, without
 * credentials in it. It calls nothing else, as it answers to nothing else.
 */
export function isIntrospectionUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  // Parsed: 127.1 and 0x7f000001 are written out as 127.0.0.1, and a name in capitals is in small letters.
  const { protocol, hostname, username, password, hash } = new URL(text);
  return protocol === 'http:' && isLoopback(hostname) && `${username}${password}${hash}` === '';
}
