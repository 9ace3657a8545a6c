import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { findFreePort } from '../free-port.ts';
import { type Address, writeAddress } from './address.ts';
import { join, type Membership } from './membership.ts';
import { endProcess } from './process.ts';
import type { ServerProgram } from './server-programs.ts';

const START_LIMIT_MS = 15_000;
const POLL_MS = 20;
const MAX_ATTEMPTS = 3;
/** How long a port may still be held by the threads of a server that was killed. */
const TAKEN_LIMIT_MS = 1_000;
const PASSWORD_BYTES = 32;
const LOG_TAIL_LINES = 5;

/** Somebody else listens where the server has to. */
export class PortTakenError extends Error {}

/**
 * Starts a server with its data and its log in `dir`, for this machine alone, and joins it.
 * It runs in a process group of its own: a terminal's Ctrl-C must not end it before the app has finished with it.
 *
 * @param place where one ran before that others still look for; by default a free port, and a new password
 * @throws PortTakenError when the port of `place` is another program's now
 * @throws Error with the last lines of the server's log when it does not come up
 */
export async function startServer(
  program: ServerProgram,
  dir: string,
  place?: Pick<Address, 'port' | 'password'>,
): Promise<{ address: Address; member: Membership }> {
  const takenDeadline = performance.now() + TAKEN_LIMIT_MS;
  for (let attempt = 1; ; attempt++) {
    const port = place?.port ?? (await findFreePort());
    const password = place?.password ?? randomBytes(PASSWORD_BYTES).toString('base64url');
    const child = launch(program, dir, { port, password });
    const pid = await pidOf(child);
    const address: Address = { kind: program.kind, port, password, pid };
    writeAddress(dir, address);
    const member = await joinWhenReady(address, child);
    if (member !== undefined) {
      child.unref();
      return { address, member };
    }
    await endProcess(pid);
    const log = readFileSync(logOf(dir), 'utf8');
    if (/address already in use|EADDRINUSE/i.test(log)) {
      if (place !== undefined) {
        if (performance.now() < takenDeadline) continue;
        throw new PortTakenError(`Another program listens on port ${port} now.`);
      }
      // Somebody else took the port between our look and the server's.
      if (attempt < MAX_ATTEMPTS) continue;
    }
    const tail = log.trimEnd().split('\n').slice(-LOG_TAIL_LINES).join('\n');
    throw new Error(
      `The private Redis (${program.command}) did not start. Its log, ${logOf(dir)}, ends with:\n${tail}`,
    );
  }
}

const logOf = (dir: string): string => joinPath(dir, 'server.log');

function launch(
  { command, args }: ServerProgram,
  dir: string,
  { port, password }: { port: number; password: string },
): ChildProcess {
  const log = openSync(logOf(dir), 'w', 0o600);
  const child = spawn(command, args, {
    cwd: dir,
    detached: true,
    stdio: ['pipe', log, log],
    // In the app's environment there are secrets, and the server may outlive the app.
    env: { PATH: process.env.PATH, HOME: process.env.HOME, LD_LIBRARY_PATH: process.env.LD_LIBRARY_PATH },
  });
  closeSync(log);
  // By standard input: a command line can be read by everybody on the machine.
  const settings = {
    bind: '127.0.0.1',
    port,
    requirepass: password,
    daemonize: 'no',
    save: '""',
    appendonly: 'yes',
    'maxmemory-policy': 'noeviction',
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} ${value}\n`);
  // A server that does not even start closes its end: joinWhenReady notices.
  child.stdin?.on('error', () => {}).end(lines.join(''));
  return child;
}

async function pidOf(child: ChildProcess): Promise<number> {
  if (child.pid !== undefined) return child.pid;
  throw await new Promise<Error>((resolve) => child.once('error', resolve));
}

async function joinWhenReady(address: Address, child: ChildProcess): Promise<Membership | undefined> {
  const deadline = performance.now() + START_LIMIT_MS;
  while (child.exitCode === null && child.signalCode === null && performance.now() < deadline) {
    const joined = await join(address);
    if (typeof joined === 'object') return joined;
    await sleep(POLL_MS);
  }
  return undefined;
}
