import type { Request, Response } from 'express';
import type { InstanceControl, InstanceStatus } from '../sync/status-types.ts';
import { Counts } from './counts.ts';
import { formMark } from './csrf.ts';
import { EventStream } from './event-stream.ts';
import { generationSeen, mayAccess } from './instance-access.ts';
import { InstanceFeed, type Presented } from './instance-feed.ts';
import { WebError } from './web-error.ts';

/** Limits and rhythm of the live streams. */
export interface LiveOptions {
  /** How often a watched instance is looked at. */
  intervalMs: number;
  /** How often a quiet stream says that it is alive; below the idle limits of usual proxies. */
  keepAliveMs: number;
  /** How long the end of a stream may take to get to its browser: within what a shutdown waits for answers. */
  endMs: number;
  /** Streams in this process. */
  maxStreams: number;
  /** Streams of one session: a browser opens six connections to a host and no more, of which its pages and forms need some. */
  maxStreamsPerSession: number;
  /** Streams of one instance, whose administrators may have any number of sessions. */
  maxStreamsPerInstance: number;
}

const DEFAULTS: LiveOptions = {
  intervalMs: 1_000,
  keepAliveMs: 15_000,
  endMs: 2_000,
  maxStreams: 200,
  maxStreamsPerSession: 4,
  maxStreamsPerInstance: 50,
};

/** What reads an instance, and who may see it. */
export type WatchedInstances = Pick<InstanceControl, 'status' | 'accessGeneration'>;
/** Makes one feed's way from a status to what is sent. */
export type MakePresenter = () => (status: InstanceStatus) => Presented;

/** Whose stream it is: a session, and the instance with the access generation in which that sees it. */
interface Owner {
  sessionId: string;
  instanceId: string;
  generation: number | undefined;
}

/**
 * Server-sent events for open pages. Watchers of one instance share one feed, which looks at it about once a
 * second while anybody watches and sends what changed.
 */
export class LiveStreams {
  readonly #options: LiveOptions;
  readonly #control: WatchedInstances;
  readonly #makePresenter: MakePresenter;
  readonly #trouble: Presented;
  readonly #feeds = new Map<string, InstanceFeed>();
  readonly #perSession = new Counts();
  readonly #perInstance = new Counts();
  readonly #open = new Map<EventStream, Owner>();
  #closed = false;

  /** @param trouble what watchers get while their instance cannot be read */
  constructor(
    control: WatchedInstances,
    makePresenter: MakePresenter,
    trouble: Presented,
    options: Partial<LiveOptions> = {},
  ) {
    this.#options = { ...DEFAULTS, ...options };
    this.#control = control;
    this.#makePresenter = makePresenter;
    this.#trouble = trouble;
  }

  /**
   * Answers a request with the instance's stream, until the browser goes, the session or its access ends, the instance is
   * gone or the app ends. It begins with the mark of the forms that the session takes.
   *
   * @throws WebError as {@link admit} does
   */
  watch(req: Request, res: Response, instanceId: string): void {
    // Someone who has left while the app looked up the instance would never be missed.
    if (res.closed || res.destroyed) return;
    const sessionId = req.sessionID;
    this.admit(sessionId, instanceId);
    const stream = new EventStream(res, {
      beginning: `event: form\ndata: ${formMark(req)}\n\n`,
      endMs: this.#options.endMs,
      onOver: () => {
        clearInterval(keepAlive);
        this.#release(stream, sessionId, instanceId);
      },
    });
    const keepAlive = setInterval(() => {
      // The page hears it, too, and looks for another process when it does not. A browser that has taken nothing in since
      // the last time will not come back.
      if (!stream.send('event: alive\ndata: still here\n\n')) return stream.breakOff();
      // The session, or what it sees, may have ended at another process.
      req.sessionStore.get(sessionId, (error, session) => {
        if (error) return;
        mayAccess(session ?? {}, instanceId, this.#control).then(
          (may) => may || stream.end(),
          // The database is away: the next sign of life tells.
          () => undefined,
        );
      });
    }, this.#options.keepAliveMs);
    this.#perSession.add(sessionId);
    this.#perInstance.add(instanceId);
    const generation = generationSeen(req.session, instanceId);
    this.#open.set(stream, { sessionId, instanceId, generation });
    this.#feedOf(instanceId, res).add(stream);
  }

  /**
   * Tells whether there is room for one more stream; it takes none.
   *
   * @throws WebError 429 when this session or this instance, 503 when the process has too many streams
   */
  admit(sessionId: string, instanceId: string): void {
    const { maxStreams, maxStreamsPerSession, maxStreamsPerInstance } = this.#options;
    if (this.#closed || this.#open.size >= maxStreams) {
      throw tooMany(503, 'Too many pages are open; this one shows no live changes.');
    }
    if (this.#perSession.of(sessionId) >= maxStreamsPerSession) {
      throw tooMany(429, 'This browser has too many live pages open.');
    }
    if (this.#perInstance.of(instanceId) >= maxStreamsPerInstance) {
      throw tooMany(429, 'Too many live pages of this company are open.');
    }
  }

  /** Ends every stream; browsers come back after a few seconds, to the next process. */
  close(): void {
    this.#closed = true;
    for (const stream of this.#open.keys()) stream.end();
  }

  /** Ends the streams of a session that is over or was replaced; those at other processes end at their next sign of life. */
  endSession(sessionId: string): void {
    for (const [stream, owner] of this.#open) if (owner.sessionId === sessionId) stream.end();
  }

  #feedOf(instanceId: string, res: Response): InstanceFeed {
    const known = this.#feeds.get(instanceId);
    if (known) return known;
    const feed = new InstanceFeed({
      read: () => this.#read(instanceId),
      present: this.#makePresenter(),
      trouble: this.#trouble,
      intervalMs: this.#options.intervalMs,
      onFailure: (error) => res.locals.log.warn({ err: error, instanceId }, 'live status failed'),
    });
    this.#feeds.set(instanceId, feed);
    return feed;
  }

  /**
   * Reads an instance for those who see it still. The streams of all others end first, so that nothing goes to them that
   * came after their access ended, at whichever process that was: browsers that were let into the next generation come back.
   */
  async #read(instanceId: string): Promise<InstanceStatus | undefined> {
    const status = await this.#control.status(instanceId);
    if (!status) return undefined;
    // Asked for after the status, which may be from after the end otherwise.
    const generation = await this.#control.accessGeneration(instanceId);
    for (const [stream, owner] of this.#open) {
      if (owner.instanceId === instanceId && owner.generation !== generation) stream.end();
    }
    return status;
  }

  #release(stream: EventStream, sessionId: string, instanceId: string): void {
    this.#open.delete(stream);
    this.#perSession.remove(sessionId);
    this.#perInstance.remove(instanceId);
    const feed = this.#feeds.get(instanceId);
    if (feed?.remove(stream)) this.#feeds.delete(instanceId);
  }
}

function tooMany(status: 429 | 503, message: string): WebError {
  return new WebError(status, 'Too many live pages', message, { retryAfterSeconds: 30 });
}
