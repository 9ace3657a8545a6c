import { readFileSync, statSync } from 'node:fs';
import { hostname } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Logger } from './logging.ts';
import type { Presence } from './presence.ts';

/** Others on the Redis may have a key of a plainer name. */
const KEY = 'partner-app:processes';

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
  /** Names the process, and its lock beside the database. */
  id: string;
  host: string;
  pid: number;
  path: string;
  /** Tells the file from its copies; by another name of the machine it may be the same all the same. Empty: not known. */
  file: string;
}

/** For containers that know one file by one path. */
const SAME_PATH =
  ' If both are one file, each has to keep its own in the directory beside it whose name ends with -processes: see that it can be written, and start both again.';

/** A process that works on the same Redis with another database file. */
export class OtherDatabaseError extends Error {
  constructor({ path, pid, host }: Member, own: string) {
    super(
      `Another process of the app (${pid} on ${host}) works on the same Redis with the database ${path}, and this one was to work with ${own}. ` +
        'Both would take each other’s jobs, and renew the same authorizations, which may end them. ' +
        'If the other one is to end, end it and start again; if not, set REDIS_URL to another Redis, or put another number at its end.' +
        (path === own ? SAME_PATH : ''),
    );
    this.name = 'OtherDatabaseError';
  }
}

/**
 * Sees to it that all processes on a Redis work with the same database file. Queues, locks and the limit are shared by
 * name: one that looks into a copy of the database, with the same environment otherwise, would take the jobs of the others,
 * and send their refresh tokens.
 *
 * Another process works with the same file if it holds its lock in the directory beside this one's: a copy of the directory
 * has the lock's file, which nobody holds. So does one whose file has the same number on the same device of the same
 * machine, which holds for one that was just killed, too. The number does not do alone: some containers of a machine name
 * it otherwise. Nor does the path: it may lead elsewhere in another container.
 */
export class SharedRedis {
  readonly #redis: Redis;
  readonly #logger: Logger;
  readonly #path: string;
  readonly #openProcesses: () => Presence;
  #opened: Presence | undefined;
  #self: Member | undefined;
  readonly #patienceMs: number;
  readonly #told = new Set<string>();
  /** When those that may work with another file were seen first. */
  readonly #firstSeen = new Map<string, number>();
  /** Those that were seen to work with the same file; of one that is killed the lock is free before it is forgotten. */
  #ours: ReadonlySet<string> = new Set();
  #timer: NodeJS.Timeout | undefined;
  #beating: Promise<void> = Promise.resolve();

  /**
   * @param path of the database file, which is there when it is asked for the first time
   * @param processes of the directory beside the file, asked for then, too
   * @param patienceMs how long a start waits for another process to end, in milliseconds
   */
  constructor(
    redis: Redis,
    {
      path,
      processes,
      logger,
      patienceMs = PATIENCE_MS,
    }: { path: string; processes: () => Presence; logger: Logger; patienceMs?: number },
  ) {
    this.#redis = redis;
    this.#logger = logger;
    this.#patienceMs = patienceMs;
    this.#path = path;
    this.#openProcesses = processes;
  }

  /**
   * Waits for a process that works with another database file, and is about to end, or was killed just before. With a Redis
   * that is away there is nothing to see.
   *
   * @throws OtherDatabaseError when it does not end
   */
  async checkAlone(): Promise<void> {
    const [other] = await this.#waitForOthers();
    if (other !== undefined) throw new OtherDatabaseError(JSON.parse(other), this.#path);
  }

  /**
   * Shows from now on that this process works with its database, and tells when another one comes with another.
   *
   * @throws OtherDatabaseError as {@link checkAlone} does
   */
  async enter(): Promise<void> {
    await this.checkAlone();
    await this.#enterDir();
    const beat = () => {
      this.#beating = this.#beat();
    };
    this.#timer = setInterval(beat, BEAT_MS).unref();
    beat();
  }

  async leave(): Promise<void> {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#timer = undefined;
    // What Redis does not hear of now, ends by itself.
    const told = this.#beating.then(() => this.#redis.zrem(KEY, this.#name)).catch(() => undefined);
    await Promise.race([told, sleep(LONGEST_LEAVE_MS, undefined, { ref: false })]);
    await this.#processes.leave();
  }

  /** Before it is seen in Redis: who sees it there looks for its lock. */
  async #enterDir(): Promise<void> {
    try {
      await this.#processes.enter();
      await this.#processes.forEachDead(async () => {});
    } catch (error) {
      this.#logger.warn(
        { err: error },
        'processes of other containers may not start beside this one: its file cannot be kept',
      );
    }
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
    // It may have been removed.
    await this.#processes.enter().catch(() => undefined);
    for (const name of await this.#others(this.#name).catch(() => [])) {
      const now = performance.now();
      const since = this.#firstSeen.get(name) ?? now;
      this.#firstSeen.set(name, since);
      // One that was dead already when it was seen first may be of this file. It is not seen for as long.
      if (this.#told.has(name) || now - since < SEEN_MS) continue;
      this.#told.add(name);
      const { path, pid, host }: Member = JSON.parse(name);
      this.#logger.error(
        { other: { path, pid, host }, own: this.#path },
        'another process works on the same Redis with another database',
      );
    }
  }

  /** Who works with another file. @param name of this process, if it is to be seen */
  async #others(name = ''): Promise<string[]> {
    const seen = (await this.#redis.eval(BEAT, 1, KEY, SEEN_MS, name)) as string[];
    const isOurs = (member: string) => {
      const { id, file }: Member = JSON.parse(member);
      const isSameFile = file !== '' && file === this.#own.file;
      return member === name || isSameFile || this.#ours.has(member) || this.#processes.isAlive(id);
    };
    this.#ours = new Set(seen.filter(isOurs));
    return seen.filter((member) => !this.#ours.has(member));
  }

  get #processes(): Presence {
    this.#opened ??= this.#openProcesses();
    return this.#opened;
  }

  get #own(): Member {
    this.#self ??= {
      id: this.#processes.id,
      host: hostname(),
      pid: process.pid,
      path: this.#path,
      file: fileOf(this.#path),
    };
    return this.#self;
  }

  get #name(): string {
    return JSON.stringify(this.#own);
  }
}

function fileOf(path: string): string {
  const { dev, ino } = statSync(path, { bigint: true });
  const name = machine();
  return name === undefined ? '' : `${name}:${dev}:${ino}`;
}

/** Names the machine until it is started anew, mostly for all of its containers; not told by every operating system. */
function machine(): string | undefined {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return undefined;
  }
}
