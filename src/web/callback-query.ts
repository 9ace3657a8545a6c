import { InstallError } from '../install/install-types.ts';

/** A code may be as long as the service likes (RFC 6749, section 4.1.2): one that is a signed or sealed document has some KB. */
const MAX_PARAMETER_BYTES = 8 * 1_024;

/**
 * Reads the query of the callback from the address as it came.
 *
 * @throws InstallError `malformed` when a parameter stands there twice (which one counts would be a guess,
 * RFC 6749 section 3.1 forbids it) or is over 8 KB
 */
export function readCallbackQuery(address: string): URLSearchParams {
  const start = address.indexOf('?');
  const query = new URLSearchParams(start === -1 ? '' : address.slice(start + 1));
  const seen = new Set<string>();
  for (const [name, value] of query) {
    if (seen.has(name)) {
      throw new InstallError('malformed', 'The address carries the same parameter more than once.');
    }
    if (Buffer.byteLength(value) > MAX_PARAMETER_BYTES || Buffer.byteLength(name) > MAX_PARAMETER_BYTES) {
      throw new InstallError('malformed', 'The address carries a parameter that is far too long.');
    }
    seen.add(name);
  }
  return query;
}
