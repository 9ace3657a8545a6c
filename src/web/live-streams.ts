import type { Request, Response } from 'express';
import type { InstanceControl, InstanceStatus } from '../sync/status-types.ts';
import { mayAccess } from './instance-access.ts';
import { InstanceFeed, type Presented } from './instance-feed.ts';
import { WebError } from './web-error.ts';

/** Limits and rhythm of the live streams. */
export interface LiveOptions {
  /** How often a watched instance is looked at. */
  intervalMs: number;
  /** How often a quiet stream says that it is alive; below the idle limits of usual proxies. */
  keepAliveMs: number;
  /** Streams in this process. */
  maxStreams: number;
  /** Streams of one session: a browser opens six connections to a host and no more. */
  maxStreamsPerSession: number;
}

const DEFAULTS: LiveOptions = {
  intervalMs: 1_000,
  keepAliveMs: 15_000,
  maxStreams: 200,
  maxStreamsPerSession: 6,
};

/** How long a browser waits before it connects again. */
const RECONNECT_MS = 3_000;

/** What reads an instance, and who may see it. */
export type WatchedInstances = Pick<InstanceControl, 'status' | 'accessGeneration'>;
/** Makes one feed's way from a status to what is sent. */
export type MakePresenter = () => (status: InstanceStatus) => Presented;

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
  readonly #perSession = new Map<string, number>();
  /** Open streams, with the session and the instance that each belongs to. */
  readonly #open = new Map<Response, { sessionId: string; instanceId: string }>();
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
   * Answers a request with the instance's stream, until the browser goes, the instance is gone or the app ends.
   *
   * @throws WebError 429 when this session, 503 when the process has too many streams
   */
  watch(req: Request, res: Response, instanceId: string): void {
    // Someone who has left while the app looked up the instance would never be missed.
    if (res.closed || res.destroyed) return;
    const sessionId = req.sessionID;
    this.#admit(sessionId);
    this.#perSession.set(sessionId, (this.#perSession.get(sessionId) ?? 0) + 1);
    this.#open.set(res, { sessionId, instanceId });
    const feed = this.#feedOf(instanceId, res);
    // `no-transform` and X-Accel-Buffering keep proxies from collecting events before they pass them on.
    res.status(200).set({
      'Content-Type': 'text/event-stream; charset=utf-8',
      'Cache-Control': 'no-store, no-transform',
      'X-Accel-Buffering': 'no',
    });
    res.write(`retry: ${RECONNECT_MS}\n\n`);
    const keepAlive = setInterval(() => {
      // A browser that has taken nothing in since the last time will not come back.
      if (res.writableNeedDrain) res.destroy();
      else res.write(': still here\n\n');
      // The session, or what it sees, may have ended at another process.
      req.sessionStore.get(sessionId, (error, session) => {
        if (error) return;
        mayAccess(session ?? {}, instanceId, this.#control).then(
          (may) => may || res.end(),
          // The database is away: the next sign of life tells.
          () => undefined,
        );
      });
    }, this.#options.keepAliveMs);
    res.once('close', () => {
      clearInterval(keepAlive);
      this.#release(res, sessionId, instanceId);
    });
    feed.add(res);
  }

  /** Ends every stream; browsers come back after a few seconds, to the next process. */
  close(): void {
    this.#closed = true;
    for (const res of this.#open.keys()) res.end();
  }

  /** Ends the streams of a session that is over; those at other processes end at their next sign of life. */
  endSession(sessionId: string): void {
    for (const [res, owner] of this.#open) if (owner.sessionId === sessionId) res.end();
  }

  /** Ends the streams of an instance whose access has ended: browsers that still may see it come back. */
  endInstance(instanceId: string): void {
    for (const [res, owner] of this.#open) if (owner.instanceId === instanceId) res.end();
  }

  #admit(sessionId: string): void {
    if (this.#closed || this.#open.size >= this.#options.maxStreams) {
      throw new WebError(
        503,
        'Too many live pages',
        'Too many pages are open; this one shows no live changes.',
        {
          retryAfterSeconds: 30,
        },
      );
    }
    if ((this.#perSession.get(sessionId) ?? 0) >= this.#options.maxStreamsPerSession) {
      throw new WebError(429, 'Too many live pages', 'This browser has too many live pages open.', {
        retryAfterSeconds: 30,
      });
    }
  }

  #feedOf(instanceId: string, res: Response): InstanceFeed {
    const known = this.#feeds.get(instanceId);
    if (known) return known;
    const feed = new InstanceFeed({
      read: () => this.#control.status(instanceId),
      present: this.#makePresenter(),
      trouble: this.#trouble,
      intervalMs: this.#options.intervalMs,
      onFailure: (error) => res.locals.log.warn({ err: error, instanceId }, 'live status failed'),
    });
    this.#feeds.set(instanceId, feed);
    return feed;
  }

  #release(res: Response, sessionId: string, instanceId: string): void {
    this.#open.delete(res);
    const left = (this.#perSession.get(sessionId) ?? 1) - 1;
    if (left > 0) this.#perSession.set(sessionId, left);
    else this.#perSession.delete(sessionId);
    const feed = this.#feeds.get(instanceId);
    if (feed?.remove(res)) this.#feeds.delete(instanceId);
  }
}
