/** An address that a server is to listen at, and the variables that it was set by. */
interface ListenAddress {
  host: string;
  port: number;
  hostVariable: string;
  portVariable: string;
}

/** Error codes for a host that this machine does not have, and for a name without an address. */
const NO_HOST_HERE: readonly unknown[] = [
  'EADDRNOTAVAIL',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EAFNOSUPPORT',
  'EINVAL',
];

/** System calls of listening; reading a file can fail with the same codes. */
const CALLS: readonly unknown[] = ['listen', 'getaddrinfo'];

/**
 * Explains why a server cannot listen at an address, and which variable to change.
 *
 * @param error of Node's server
 * @returns undefined for an error with another cause
 */
export function listenError(error: unknown, address: ListenAddress): Error | undefined {
  if (!(error instanceof Error && 'code' in error && 'syscall' in error)) return undefined;
  if (!CALLS.includes(error.syscall)) return undefined;
  const sentence = explain(error.code, address);
  return sentence === undefined ? undefined : new Error(sentence, { cause: error });
}

function explain(
  code: unknown,
  { host, port, hostVariable, portVariable }: ListenAddress,
): string | undefined {
  if (NO_HOST_HERE.includes(code)) {
    return `${host} is no address of this machine: set ${hostVariable} to one that is.`;
  }
  if (code === 'EADDRINUSE') {
    return `Port ${port} is in use: end what listens there, or set ${portVariable} to another one.`;
  }
  if (code === 'EACCES') {
    return `Port ${port} is not allowed to this user: set ${portVariable} to one above 1023.`;
  }
  return undefined;
}

/** What is wrong with a text that is no port: the end of a sentence that begins with the variable's name. */
export function portProblem(text: string): string | undefined {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return undefined;
  return /^\w+:\/\//.test(text)
    ? 'is an address, as Kubernetes sets it for a Service of this name: rename the Service, or set enableServiceLinks: false in the pod'
    : 'must be a whole number from 0 to 65535';
}
