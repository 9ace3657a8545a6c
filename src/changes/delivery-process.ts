import { type ChildProcess, fork } from 'node:child_process';
import inspector from 'node:inspector';
import type { Logger } from '../runtime/logging.ts';
import { redact } from '../runtime/redaction.ts';
import type { ChangeStore, Lagging } from '../store/changes.ts';
import type { AppEvent } from './app-events.ts';
import { ConsumerError, type Delivered, type Deliveries, PROCESS_ENDED } from './delivery.ts';

/** The pause before another process starts: it doubles until a delivery ends in order. In milliseconds. */
const RESTART_PAUSE = { firstMs: 1_000, longestMs: 30_000 } as const;

/** How long a process may take to start, to end, and to be silent beyond the time of a handler's call. */
const START_MS = 60_000;
const STOP_MS = 4_000;
const SILENCE_MS = 10_000;

/** How often the process says that it lives, in milliseconds. */
export const HEARTBEAT_MS = 1_000;

/** A reason is cut after so many UTF-16 units. */
const LONGEST_REASON = 500;

/** Calls that a log line names. */
const MOST_NAMED = 5;

/** A call of a consumer, for the log. */
interface CallFacts {
  company: string;
  instanceId: string;
  resource: string;
  /** The first record of the call, and how many it has. */
  record: string;
  records: number;
}

/** What a worker tells its delivery process. `start` answers `loaded`. */
export type ToDeliveryProcess =
  | { type: 'start'; start: unknown }
  | { type: 'deliver'; id: number; key: Lagging; alone: boolean }
  | { type: 'stop' };

/** Metrics that a delivery process counts in its worker. */
export type CountName = 'onServiceOutcome' | 'onTokenRefresh';

/** What a delivery process tells its worker. */
export type FromDeliveryProcess =
  | { type: 'loaded' }
  | { type: 'ready' }
  | { type: 'alive' }
  | { type: 'call'; id: number; call: CallFacts }
  | { type: 'done'; id: number; delivered: Delivered }
  | { type: 'event'; event: AppEvent }
  | { type: 'count'; name: CountName; value: unknown }
  /** Its last word. */
  | { type: 'fatal'; reason: string };

interface ProcessParts {
  /** The file of the process, and what it needs to start. */
  entry: URL;
  start: unknown;
  memoryMb: number;
  /** Time of one call of the handler, in milliseconds. */
  timeoutMs: number;
  changes: Pick<ChangeStore, 'noteEnd'>;
  logger: Logger;
  onEvent: (event: AppEvent) => void;
  onCount: (name: CountName, value: unknown) => void;
}

interface Ask {
  key: Lagging;
  alone: boolean;
  call?: CallFacts;
  resolve: (delivered: Delivered) => void;
}

/**
 * Runs deliveries in a child process, so that a handler takes nothing else down: it may loop without an end, fill its
 * memory, end the process. Then another one starts. Suspects (see `deliver`) are alone in it; one that was charged gets a
 * process that has delivered nothing yet.
 */
export class DeliveryProcess implements Deliveries {
  readonly #parts: ProcessParts;
  readonly #asks = new Map<number, Ask>();
  readonly #waiting: { alone: boolean; start: () => void }[] = [];
  #lastId = 0;
  #underWay = 0;
  #isAlone = false;
  #child: ChildProcess | undefined;
  #ready = Promise.withResolvers<void>();
  #isReady = false;
  #hasCalled = false;
  #heartbeatsMissed = 0;
  #endReason: string | undefined;
  #pauseMs: number = RESTART_PAUSE.firstMs;
  #restart: NodeJS.Timeout | undefined;
  /** Whether the process was told to end. */
  #isStopping = false;
  #isClosing = false;
  readonly #watch: NodeJS.Timeout;

  constructor(parts: ProcessParts) {
    this.#parts = parts;
    this.#watch = setInterval(() => this.#checkHeartbeat(), HEARTBEAT_MS).unref();
    this.#launch();
  }

  async deliver(key: Lagging): Promise<number | undefined> {
    const delivered = await this.#inSlot(false, () => this.#ask(key, false));
    if ('again' in delivered) return delivered.again;
    const alone = await this.#inSlot(true, async () => {
      if (delivered.wasCharged && this.#hasCalled) await this.#stop();
      return this.#ask(key, true);
    });
    return 'again' in alone ? alone.again : Date.now();
  }

  get state(): string {
    if (this.#child === undefined) return 'ended, starts again';
    if (!this.#isReady) return 'starting';
    return this.#isAlone ? 'delivers alone what may have ended it' : 'ready';
  }

  /** Ends the process. Its deliveries go on elsewhere. */
  async close(): Promise<void> {
    this.#isClosing = true;
    clearInterval(this.#watch);
    clearTimeout(this.#restart);
    this.#ready.resolve();
    await this.#stop();
  }

  /** Waits for a slot, in the order of the calls: alone, or beside others that need not be alone. */
  async #inSlot(alone: boolean, work: () => Promise<Delivered>): Promise<Delivered> {
    await new Promise<void>((start) => {
      this.#waiting.push({ alone, start });
      this.#startWaiting();
    });
    try {
      return await work();
    } finally {
      this.#underWay--;
      this.#isAlone = false;
      this.#startWaiting();
    }
  }

  #startWaiting(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#isAlone || (next.alone && this.#underWay > 0)) return;
      this.#waiting.shift();
      this.#underWay++;
      this.#isAlone = next.alone;
      next.start();
    }
  }

  async #ask(key: Lagging, alone: boolean): Promise<Delivered> {
    await this.#ready.promise;
    if (this.#isClosing) return { again: Date.now() };
    const id = ++this.#lastId;
    return new Promise((resolve) => {
      this.#asks.set(id, { key, alone, resolve });
      this.#send({ type: 'deliver', id, key, alone });
    });
  }

  #send(message: ToDeliveryProcess): void {
    // If the process has ended, its exit answers all.
    if (this.#child?.connected) this.#child.send(message, () => undefined);
  }

  #launch(): void {
    const { entry, memoryMb, start } = this.#parts;
    const child = fork(entry, [String(process.pid)], {
      execArgv: [...childFlags(), `--max-old-space-size=${memoryMb}`],
      serialization: 'advanced',
    });
    this.#child = child;
    this.#isReady = false;
    this.#hasCalled = false;
    this.#heartbeatsMissed = 0;
    this.#endReason = undefined;
    child.on('message', (message) => this.#take(message as FromDeliveryProcess, start));
    child.once('error', (error) => {
      this.#endReason = error.message;
      // Without a process there is no exit.
      if (child.pid === undefined) void this.#ended(null, null);
    });
    child.once('exit', (code, signal) => {
      const ended = () => void this.#ended(code, signal);
      // Its last words may still be on their way.
      if (child.connected) child.once('disconnect', ended);
      else ended();
    });
  }

  #take(message: FromDeliveryProcess, start: unknown): void {
    this.#heartbeatsMissed = 0;
    switch (message.type) {
      case 'loaded':
        this.#send({ type: 'start', start });
        break;
      case 'ready':
        this.#isReady = true;
        this.#ready.resolve();
        break;
      case 'call': {
        const ask = this.#asks.get(message.id);
        this.#hasCalled = true;
        if (ask !== undefined) ask.call = message.call;
        break;
      }
      case 'done':
        this.#pauseMs = RESTART_PAUSE.firstMs;
        this.#asks.get(message.id)?.resolve(message.delivered);
        this.#asks.delete(message.id);
        break;
      case 'event':
        this.#parts.onEvent(message.event);
        break;
      case 'count':
        this.#parts.onCount(message.name, message.value);
        break;
      case 'fatal':
        this.#endReason = message.reason;
    }
  }

  /** Counts beats, not time: this process may have stood still itself. At a breakpoint the child is silent, too. */
  #checkHeartbeat(): void {
    const limitMs = this.#isReady ? this.#parts.timeoutMs + SILENCE_MS : START_MS;
    if (this.#child === undefined || ++this.#heartbeatsMissed * HEARTBEAT_MS <= limitMs) return;
    if (inspector.url() !== undefined) return;
    this.#endReason ??= `no sign of life for ${Math.round(limitMs / 1_000)} s`;
    this.#child.kill('SIGKILL');
  }

  /** Stops the process in order, or kills it. */
  async #stop(): Promise<void> {
    const child = this.#child;
    if (child === undefined) return;
    const late = setTimeout(() => child.kill('SIGKILL'), STOP_MS);
    const exited = new Promise((resolve) => child.once('exit', resolve));
    this.#isStopping = true;
    this.#send({ type: 'stop' });
    await exited;
    clearTimeout(late);
  }

  async #ended(code: number | null, signal: NodeJS.Signals | null): Promise<void> {
    const { changes, logger } = this.#parts;
    const wasStopped = this.#isStopping;
    const asks = [...this.#asks.values()];
    this.#asks.clear();
    this.#child = undefined;
    this.#isStopping = false;
    if (!this.#isClosing) {
      if (this.#isReady) this.#ready = Promise.withResolvers();
      this.#restart = setTimeout(() => this.#launch(), wasStopped ? 0 : this.#pauseMs);
      if (!wasStopped) this.#pauseMs = Math.min(2 * this.#pauseMs, RESTART_PAUSE.longestMs);
    }
    if (!wasStopped) {
      const reason = redact(this.#endReason ?? reasonOf(code, signal)).slice(0, LONGEST_REASON);
      const calls = asks.flatMap(({ call }) => call ?? []);
      const what = this.#isReady ? PROCESS_ENDED : 'The delivery process did not start';
      const err = new ConsumerError(`${what}: ${reason}. ${namesOf(calls)}`);
      logger.error({ err, calls }, 'the delivery process ended, and starts again');
      // Of several calls nobody knows which one it was.
      const toBlame = asks.find(({ alone, call }) => alone && call !== undefined);
      if (toBlame !== undefined)
        await changes.noteEnd(toBlame.key, `${PROCESS_ENDED}: ${reason}`).catch(() => undefined);
    }
    for (const { resolve } of asks) resolve({ again: Date.now() });
  }
}

/** The flags of this process. A debugger's port is taken: the child has the next one. */
export function childFlags(): string[] {
  const flags = process.execArgv.filter((flag) => !/^--(inspect|watch|max-old-space-size)/.test(flag));
  const url = inspector.url();
  if (url === undefined) return flags;
  const { hostname, port } = new URL(url);
  return [...flags, `--inspect=${hostname}:${Number(port) + 1}`];
}

function reasonOf(code: number | null, signal: NodeJS.Signals | null): string {
  // Node ends so when the heap is full; so does the thread that watches the memory.
  if (signal === 'SIGABRT' || code === 134) return 'out of memory';
  if (signal === 'SIGXCPU') return 'it computed in a transaction';
  return signal === null ? `process.exit(${code})` : `killed (${signal})`;
}

function namesOf(calls: readonly CallFacts[]): string {
  if (calls.length === 0) return 'No call was under way.';
  const names = calls.slice(0, MOST_NAMED).map(({ company, resource, record, records }) => {
    return `${company}, ${resource}, ${records === 1 ? '' : `${records} records from `}${record}`;
  });
  const more = calls.length > MOST_NAMED ? `; and ${calls.length - MOST_NAMED} more` : '';
  return `Under way: ${names.join('; ')}${more}.`;
}
