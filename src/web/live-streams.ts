import type { Response } from 'express';
import type { BrowserStore } from '../store/browsers.ts';
import type { InstanceControl, InstanceStatus } from '../sync/status-types.ts';
import { Counts } from './counts.ts';
import { EventStream } from './event-stream.ts';
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
  /** Streams of one browser, which opens six connections to a host and no more, of which its pages and forms need some. */
  maxStreamsPerBrowser: number;
  /** Streams of one instance, whose administrators may have any number of sessions. */
  maxStreamsPerInstance: number;
}

const DEFAULTS: LiveOptions = {
  intervalMs: 1_000,
  keepAliveMs: 15_000,
  endMs: 2_000,
  maxStreams: 200,
  maxStreamsPerBrowser: 4,
  maxStreamsPerInstance: 50,
};

/** What reads an instance, and who may see it. */
export interface WatchedInstances {
  control: Pick<InstanceControl, 'status'>;
  browsers: Pick<BrowserStore, 'whoSees'>;
}

/** Makes the function by which one feed turns a status into an event. */
export type MakePresenter = () => (status: InstanceStatus) => Presented;

/** The browser and the instance of a stream. */
interface Owner {
  browserId: string;
  instanceId: string;
}

/**
 * Server-sent events for open pages. Watchers of one instance share one feed, which looks at it about once a
 * second while anybody watches and sends what changed.
 */
export class LiveStreams {
  readonly #options: LiveOptions;
  readonly #watched: WatchedInstances;
  readonly #makePresenter: MakePresenter;
  readonly #outage: Presented;
  readonly #feeds = new Map<string, InstanceFeed>();
  readonly #perBrowser = new Counts();
  readonly #perInstance = new Counts();
  readonly #open = new Map<EventStream, Owner>();
  #closed = false;

  /** @param outage what watchers get while their instance cannot be read */
  constructor(
    watched: WatchedInstances,
    makePresenter: MakePresenter,
    outage: Presented,
    options: Partial<LiveOptions> = {},
  ) {
    this.#options = { ...DEFAULTS, ...options };
    this.#watched = watched;
    this.#makePresenter = makePresenter;
    this.#outage = outage;
  }

  /**
   * Answers a request with the instance's stream, until the browser goes or does not see the instance any more, the
   * instance is gone or the app ends.
   *
   * @throws WebError as {@link admit} does
   */
  watch(res: Response, browserId: string, instanceId: string): void {
    // A browser that left during the lookup emits no `close` any more.
    if (res.closed || res.destroyed) return;
    this.admit(browserId, instanceId);
    const stream = new EventStream(res, {
      endMs: this.#options.endMs,
      onOver: () => {
        clearInterval(keepAlive);
        this.#release(stream, browserId, instanceId);
      },
    });
    const keepAlive = setInterval(() => {
      // The page hears it, too, and looks for another process when it does not. A browser that has taken nothing in since
      // the last time will not come back.
      if (!stream.send('event: alive\ndata: still here\n\n')) stream.breakOff();
    }, this.#options.keepAliveMs);
    this.#perBrowser.add(browserId);
    this.#perInstance.add(instanceId);
    this.#open.set(stream, { browserId, instanceId });
    this.#feedOf(instanceId, res).add(stream);
  }

  /**
   * Tells whether there is room for one more stream; it takes none.
   *
   * @throws WebError 429 when this browser or this instance, 503 when the process has too many streams
   */
  admit(browserId: string, instanceId: string): void {
    const { maxStreams, maxStreamsPerBrowser, maxStreamsPerInstance } = this.#options;
    if (this.#closed || this.#open.size >= maxStreams) {
      throw tooMany(503, 'Too many pages are open; this one shows no live changes.');
    }
    if (this.#perBrowser.of(browserId) >= maxStreamsPerBrowser) {
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

  #feedOf(instanceId: string, res: Response): InstanceFeed {
    const known = this.#feeds.get(instanceId);
    if (known) return known;
    const feed = new InstanceFeed({
      read: () => this.#read(instanceId),
      present: this.#makePresenter(),
      outage: this.#outage,
      intervalMs: this.#options.intervalMs,
      onFailure: (error) => res.locals.log.warn({ err: error, instanceId }, 'live status failed'),
    });
    this.#feeds.set(instanceId, feed);
    return feed;
  }

  /** Reads an instance, and ends the streams of browsers that do not see it any more before they get anything of it. */
  async #read(instanceId: string): Promise<InstanceStatus | undefined> {
    const { control, browsers } = this.#watched;
    const status = await control.status(instanceId);
    if (!status) return undefined;
    // Asked for after the status, which may be from after the end otherwise.
    const seers = await browsers.whoSees(instanceId);
    for (const [stream, owner] of this.#open) {
      if (owner.instanceId === instanceId && !seers.has(owner.browserId)) stream.end();
    }
    return status;
  }

  #release(stream: EventStream, browserId: string, instanceId: string): void {
    this.#open.delete(stream);
    this.#perBrowser.remove(browserId);
    this.#perInstance.remove(instanceId);
    const feed = this.#feeds.get(instanceId);
    if (feed?.remove(stream)) this.#feeds.delete(instanceId);
  }
}

function tooMany(status: 429 | 503, message: string): WebError {
  return new WebError(status, 'Too many live pages', message, { retryAfterSeconds: 30 });
}
