import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import type { InstanceControl } from '../sync/status-types.ts';
import { LaterSession } from './later-session.ts';
import { within } from './redis-session-client.ts';

/** How long a browser may take to come with its newer cookie, in seconds. */
const KEPT_SECONDS = 60;

/** What is kept of a late install. */
interface Left {
  instanceId: string;
  /** The access generation that it was left in; undefined when there was no such instance. */
  generation: number | undefined;
  /** The session that had been replaced. */
  sessionId: string;
}

type Control = Pick<InstanceControl, 'accessGeneration'>;

/**
 * Installs whose session had been replaced by their end: its browser has the newer one, and comes for them with that,
 * which has the same state under way. Nobody else is let in by it: who asks has to have begun what the state is of, and
 * to know the code.
 */
export class LateInstalls {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  /**
   * Leaves an instance for the browser to come for.
   *
   * @param left.sessionId of the session that has been replaced
   * @throws StoreUnavailableError
   */
  async leave(
    query: URLSearchParams,
    left: Pick<Left, 'instanceId' | 'sessionId'>,
    control: Control,
  ): Promise<void> {
    const kept: Left = { ...left, generation: await control.accessGeneration(left.instanceId) };
    await within(this.#redis.set(nameOf(query), JSON.stringify(kept), 'EX', KEPT_SECONDS));
  }

  /**
   * Which instance a callback has brought that came too late, if neither the access that it brought has been
   * ended since, nor the browser's session by a log-out.
   *
   * @throws StoreUnavailableError
   */
  async find(query: URLSearchParams, control: Control): Promise<string | undefined> {
    const text = await within(this.#redis.get(nameOf(query)));
    if (text === null) return undefined;
    const { instanceId, generation, sessionId } = JSON.parse(text) as Left;
    if ((await new LaterSession(this.#redis, sessionId).read()) === undefined) return undefined;
    const isSeen = generation !== undefined && generation === (await control.accessGeneration(instanceId));
    return isSeen ? instanceId : undefined;
  }
}

function nameOf(query: URLSearchParams): string {
  const parts = [query.get('state'), query.get('code')];
  return `install-late:${createHash('sha256').update(parts.join('\n')).digest('base64url')}`;
}
