import { readFileSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Logger } from './logging.ts';

const KEY = 'processes';

/** How often a process shows that it lives, in milliseconds. */
const BEAT_MS = 1_000;

/** How long one is seen after its last beat, in milliseconds. */
const SEEN_MS = 3_000;

/** How long a start waits for another process to end, in milliseconds: one that was told to may take ten seconds. */
const PATIENCE_MS = 12_000;
const LOOK_AGAIN_MS = 250;

/** How long a start waits for a Redis that does not answer, in milliseconds. */
const LONGEST_LOOK_MS = 3_000;

/** And an end, in milliseconds. */
const LONGEST_LEAVE_MS = 500;

// By Redis' clock: those of two machines may differ. Without a member it only looks.
const BEAT = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[1]))
if ARGV[2] ~= '' then
  redis.call('ZADD', KEYS[1], now, ARGV[2])
  redis.call('PEXPIRE', KEYS[1], ARGV[1])
end
return redis.call('ZRANGE', KEYS[1], 0, -1)`;

/** What a process tells the others of itself. */
interface Member {
  /** Names the process. */
  id: string;
  host: string;
  pid: number;
  path: string;
  /** Tells the file from its copies, also in another container. */
  file: string;
}

/** A process that works on the same Redis with another database file. */
export class OtherDatabaseError extends Error {
  constructor({ path, pid, host }: Member, own: string) {
    super(
      `Another process of the app (${pid} on ${host}) works on the same Redis with the database ${path}, and this one was to work with ${own}. ` +
        'Both would take each other’s jobs, and renew the same authorizations, which may end them. ' +
        'If the other one is to end, end it and start again; if not, set REDIS_URL to another Redis, or put another number at its end.',
    );
    this.name = 'OtherDatabaseError';
  }
}

/**
 * Sees to it that all processes on a Redis work with the same database file. Queues, locks and the limit are shared by
 * name: one that looks into a copy of the database, with the same environment otherwise, would take the jobs of the others,
 * and send their refresh tokens.
 *
 * A file is told by its number on its device on this machine: its path may lead elsewhere in another container, and a copy
 * on another device may have the same number.
 */
export class SharedRedis {
  readonly #redis: Redis;
  readonly #logger: Logger;
  readonly #process: Omit<Member, 'file'>;
  #file: string | undefined;
  readonly #patienceMs: number;
  readonly #told = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param path of the database file, which is there when it is asked for the first time
   * @param id names this process
   * @param patienceMs how long a start waits for another process to end, in milliseconds
   */
  constructor(
    redis: Redis,
    {
      path,
      id,
      logger,
      patienceMs = PATIENCE_MS,
    }: { path: string; id: string; logger: Logger; patienceMs?: number },
  ) {
    this.#redis = redis;
    this.#logger = logger;
    this.#patienceMs = patienceMs;
    this.#process = { id, host: hostname(), pid: process.pid, path };
  }

  /**
   * Waits for a process that works with another database file, and is about to end, or was killed just before. With a Redis
   * that is away there is nothing to see.
   *
   * @throws OtherDatabaseError when it does not end
   */
  async checkAlone(): Promise<void> {
    const [other] = await this.#waitForOthers();
    if (other !== undefined) throw new OtherDatabaseError(JSON.parse(other), this.#process.path);
  }

  /**
   * Shows from now on that this process works with its database, and tells when another one comes with another.
   *
   * @throws OtherDatabaseError as {@link checkAlone} does
   */
  async enter(): Promise<void> {
    await this.checkAlone();
    this.#timer = setInterval(() => void this.#beat(), BEAT_MS).unref();
    void this.#beat();
  }

  async leave(): Promise<void> {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    // What Redis does not hear of now, ends by itself.
    const told = this.#redis.zrem(KEY, this.#name).catch(() => undefined);
    await Promise.race([told, sleep(LONGEST_LEAVE_MS, undefined, { ref: false })]);
  }

  async #waitForOthers(): Promise<string[]> {
    const giveUpAt = performance.now() + this.#patienceMs;
    for (let hasTold = false; ; hasTold = true) {
      const late = sleep(LONGEST_LOOK_MS, [], { ref: false });
      const others = await Promise.race([this.#others().catch(() => []), late]);
      if (others.length === 0 || performance.now() >= giveUpAt) return others;
      if (!hasTold) {
        const [other = ''] = others;
        this.#logger.info(
          { other: JSON.parse(other) },
          'another process works on the same Redis with another database: waiting for its end',
        );
      }
      await sleep(LOOK_AGAIN_MS);
    }
  }

  async #beat(): Promise<void> {
    for (const name of await this.#others(this.#name).catch(() => [])) {
      if (this.#told.has(name)) continue;
      this.#told.add(name);
      const { path, pid, host }: Member = JSON.parse(name);
      this.#logger.error(
        { other: { path, pid, host }, own: this.#process.path },
        'another process works on the same Redis with another database',
      );
    }
  }

  /** Who works with another file. @param name of this process, if it is to be seen */
  async #others(name = ''): Promise<string[]> {
    const seen = (await this.#redis.eval(BEAT, 1, KEY, SEEN_MS, name)) as string[];
    return seen.filter((member) => (JSON.parse(member) as Member).file !== this.#own.file);
  }

  get #own(): Member {
    this.#file ??= fileOf(this.#process.path);
    return { ...this.#process, file: this.#file };
  }

  get #name(): string {
    return JSON.stringify(this.#own);
  }
}

function fileOf(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  return `${machine()}:${dev}:${ino}`;
}

/** Names the machine, for all of its containers, until it is started anew; not told by every operating system. */
function machine(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return '';
  }
}
