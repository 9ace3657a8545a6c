import { existsSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FileLockTimeoutError, withFileLock } from '../file-lock.ts';
import type { Logger } from '../logging.ts';
import { type Address, readAddress, removeAddress } from './address.ts';
import { join, type Membership } from './membership.ts';
import { endProcess, isRunning } from './process.ts';
import type { ServerProgram } from './server-programs.ts';
import { PortTakenError, startServer } from './start-server.ts';

/** Longer than a server may take to start, as others wait for that. */
const OPEN_LOCK_LIMIT_MS = 20_000;
const RELEASE_LOCK_LIMIT_MS = 1_000;
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 5_000;

/** What a process needs to keep a private Redis. */
export interface KeptServerParts {
  /** Of its data, its address and its lock. */
  dir: string;
  /** Looks for what a server can run on. */
  findProgram: () => ServerProgram;
  logger: Logger;
  /** Told once when it cannot be had any more at the address that this process knows. */
  onLost: (error: Error) => void;
}

/** The private Redis of a directory, as one of its users: it is started again when it dies, and ended by its last one. */
export class KeptServer {
  readonly #parts: KeptServerParts;
  readonly #leaving = new AbortController();
  /** The server that this process is a user of by now. */
  #joined: Joined;
  #released: Promise<void> | undefined;
  /** What this process's connections know: port and password stay; another one may start it again. */
  readonly address: Address;

  private constructor(parts: KeptServerParts, joined: Joined) {
    this.#parts = parts;
    this.address = joined.address;
    this.#joined = joined;
    this.#watch(joined.member);
  }

  /** Joins the server of the directory, or starts one: where the last one ran, when that has died. */
  static async open(parts: KeptServerParts): Promise<KeptServer> {
    const joined = await withFileLock(lockOf(parts.dir), OPEN_LOCK_LIMIT_MS, async () => {
      const kept = readAddress(parts.dir);
      return (await joinKept(kept)) ?? (await startAnew(parts, kept));
    });
    return new KeptServer(parts, joined);
  }

  /** Gives it back; the last user ends it. */
  release(): Promise<void> {
    this.#released ??= this.#release();
    return this.#released;
  }

  async #release(): Promise<void> {
    const { dir, logger } = this.#parts;
    this.#leaving.abort();
    try {
      // Nobody can join by a directory that was deleted, nor lock it.
      if (!existsSync(dir)) await this.#leave();
      else await withFileLock(lockOf(dir), RELEASE_LOCK_LIMIT_MS, () => this.#leave());
    } catch (error) {
      // A lock that is taken means somebody is starting or joining: that one, not we, is the last user.
      if (error instanceof FileLockTimeoutError) return;
      const { pid } = this.#joined.address;
      logger.warn({ err: error, pid }, 'the private Redis may have been left running');
    } finally {
      this.#joined.member.close();
    }
  }

  /** Under the lock: nobody joins meanwhile. */
  async #leave(): Promise<void> {
    const { dir } = this.#parts;
    const current = readAddress(dir);
    // After a crash of ours, or when the address was deleted, somebody may have started another since.
    const isOurs = current?.password === this.address.password;
    // It may have died, and have been started again by somebody else since: that one counts, too.
    if (this.#joined.member.isGone) {
      if (!isOurs) return;
      const joined = await joinKept(current);
      if (joined === undefined) {
        removeAddress(dir);
        return;
      }
      this.#joined = joined;
    }
    // One without an address has those users alone that know it already.
    if ((await this.#joined.member.leaveAndCount()) > 0) return;
    await endProcess(this.#joined.address.pid);
    if (isOurs) removeAddress(dir);
  }

  #watch(member: Membership): void {
    member.onGone(() => void this.#recover());
  }

  async #recover(): Promise<void> {
    const { dir, logger, onLost } = this.#parts;
    const { signal } = this.#leaving;
    for (let pause = FIRST_PAUSE_MS; !signal.aborted; pause = Math.min(2 * pause, MAX_PAUSE_MS)) {
      try {
        await withFileLock(lockOf(dir), OPEN_LOCK_LIMIT_MS, () => this.#comeBack());
        return;
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof LostError) {
          onLost(error);
          return;
        }
        logger.error({ err: error }, 'the private Redis cannot be started again, trying on');
      }
      await sleep(pause, undefined, { signal }).catch(() => undefined);
    }
  }

  /** Under the lock: nobody else starts or ends one meanwhile. */
  async #comeBack(): Promise<void> {
    if (this.#leaving.signal.aborted) return;
    const { dir, findProgram, logger } = this.#parts;
    const { port, password } = this.address;
    const current = readAddress(dir);
    if (current !== undefined && current.password !== password && isRunning(current.pid)) {
      throw new LostError(port, 'it has been started on another one since');
    }
    let joined = await joinKept(current);
    if (joined === undefined) {
      try {
        joined = await startServer(findProgram(), dir, { port, password });
      } catch (error) {
        if (!(error instanceof PortTakenError)) throw error;
        throw new LostError(port, 'another program has taken it', error);
      }
      logger.warn({ pid: joined.address.pid, port }, 'the private Redis has died: it is started again');
    }
    this.#joined = joined;
    this.#watch(joined.member);
  }
}

interface Joined {
  address: Address;
  member: Membership;
}

class LostError extends Error {
  constructor(port: number, why: string, cause?: unknown) {
    super(
      `The private Redis has died and cannot be had again on port ${port}: ${why}. Start this process again: it finds it then, or starts it elsewhere.`,
      { cause },
    );
    this.name = 'PrivateRedisLostError';
  }
}

const lockOf = (dir: string): string => joinPath(dir, 'lock');

async function joinKept(address: Address | undefined): Promise<Joined | undefined> {
  if (address === undefined || !isRunning(address.pid)) return undefined;
  const member = await join(address);
  if (typeof member === 'object') return { address, member };
  if (member === 'silent') {
    // A second server on the same files would spoil them.
    throw new Error(
      `The private Redis (process ${address.pid}) does not answer: end that process, then start again.`,
    );
  }
  return undefined;
}

/** Where the last one ran, so that processes that outlived it find it again. */
async function startAnew({ dir, findProgram }: KeptServerParts, last: Address | undefined): Promise<Joined> {
  const program = findProgram();
  try {
    return await startServer(program, dir, last);
  } catch (error) {
    if (!(error instanceof PortTakenError)) throw error;
    return startServer(program, dir);
  }
}
