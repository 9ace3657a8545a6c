import { describe, expect, it } from 'vitest';
import { listenError } from '../../src/contract/listen-error.ts';

const ADDRESS = { host: 'app.example', port: 80, hostVariable: 'HOST', portVariable: 'WORKER_PORT' };

/** An error as the system has them. */
const systemError = (syscall: string, code: string) =>
  Object.assign(new Error(`${syscall} ${code}`), { syscall, code });

describe('why nobody can listen at an address', () => {
  it.each([
    ['listen', 'EADDRINUSE', 'Port 80 is in use: end what listens there, or set WORKER_PORT to another one.'],
    ['listen', 'EACCES', 'Port 80 is not allowed to this user: set WORKER_PORT to one above 1023.'],
    ['listen', 'EADDRNOTAVAIL', 'app.example is no address of this machine: set HOST to one that is.'],
    ['listen', 'EAFNOSUPPORT', 'app.example is no address of this machine: set HOST to one that is.'],
    ['getaddrinfo', 'ENOTFOUND', 'app.example is no address of this machine: set HOST to one that is.'],
    ['getaddrinfo', 'EAI_AGAIN', 'app.example is no address of this machine: set HOST to one that is.'],
  ])('is told with the variable to change: %s %s', (syscall, code, message) => {
    const error = systemError(syscall, code);
    expect(listenError(error, ADDRESS)).toMatchObject({ message, cause: error });
  });

  it('is not told of a file that may not be read, or of what the system has not said', () => {
    for (const error of [systemError('open', 'EACCES'), systemError('listen', 'EMFILE'), new Error('x')]) {
      expect(listenError(error, ADDRESS)).toBeUndefined();
    }
  });
});
