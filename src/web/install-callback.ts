import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Request, Response } from 'express';
import type { SessionData } from 'express-session';
import { InstallError } from '../install/install-types.ts';
import { BegunInstalls } from './begun-install.ts';
import { explainSpent, explainUnseen } from './install-trouble.ts';
import { grantAccess, type InstanceAccess, mayAccess } from './instance-access.ts';
import { LateInstalls } from './late-installs.ts';
import { LaterSession } from './later-session.ts';
import { claimOnce, within } from './redis-session-client.ts';
import { SESSION_PREFIX, sessionCookie } from './session.ts';
import {
  adoptSession,
  disownSession,
  refreshSession,
  replaceSession,
  saveSession,
} from './session-actions.ts';
import { inChangeTurn, inReplacementTurn, sentEndedSession } from './session-changes.ts';
import { takeRenewal } from './session-cookie.ts';
import type { WebDependencies } from './web-dependencies.ts';

/** Longer than a state can live. */
const CLAIM_SECONDS = 15 * 60;

/** How long a browser that has missed the answer may come for it again. */
const HANDOVER_SECONDS = 60;

/** How long an earlier click that has the state is waited for, in milliseconds, and how often it is looked. */
const EARLIER_CLICK = { waitMs: 2_000, everyMs: 100 } as const;

/** Callbacks that a session remembers: enough for the tabs that somebody may go back to. */
const MAX_FINISHED_INSTALLS = 10;

type Parts = Pick<WebDependencies, 'redis' | 'installer' | 'control' | 'sessionSecret' | 'publicUrl'>;

type InstalledSession = InstanceAccess & Pick<SessionData, 'pendingInstalls' | 'finishedInstalls' | 'flash'>;

/** What became of a callback: the instance that it leads to, or that the browser has to ask again. */
export type CallbackOutcome = { instanceId: string; isNew: boolean } | 'ask again';

function digest(...parts: string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('base64url');
}

/**
 * Finishes installs for browsers that ask twice: a double click, a reload, two tabs.
 *
 * Callbacks of one session take turns. Success gives the session a new id, so whoever waited finds the old one gone,
 * and asks again with the cookie that the browser has by then. A browser that went away before the answer (a second
 * click does that) still has the old cookie; it is led into the new session for the same cookie, state and code, for a
 * minute, unless that has ended: whoever logs out has ended it for all.
 * The code is what nobody has who planted the old cookie.
 */
export class InstallCallback {
  readonly #deps: Parts;
  readonly #begun: BegunInstalls;
  readonly #late: LateInstalls;

  constructor(deps: Parts) {
    this.#deps = deps;
    this.#late = new LateInstalls(deps.redis);
    this.#begun = new BegunInstalls(deps.sessionSecret, deps.publicUrl.startsWith('https:'));
  }

  /** Begins an install; undefined when the session was replaced meanwhile: the browser has to ask again. */
  async start(req: Request, res: Response): Promise<URL | undefined> {
    if (await this.#hasToAskAgain(req)) return undefined;
    return this.#change(req, async () => {
      const wasKnown = isKnown(req);
      if (!(await refreshSession(req)) && wasKnown) {
        disownSession(req);
        return undefined;
      }
      const address = this.#deps.installer.start(req.session);
      await saveSession(req);
      const state = address.searchParams.get('state') ?? '';
      if (!wasKnown) this.#begun.remember(res, state, Date.now());
      return address;
    });
  }

  /** @throws InstallError */
  async finish(req: Request, res: Response, query: URLSearchParams): Promise<CallbackOutcome> {
    const isKnownHere = (await this.#earlierInstance(req, query)) !== undefined;
    if (!isKnownHere && (await this.#handOver(req, query)) === 'ended') return 'ask again';
    const earlier = await this.#earlierInstance(req, query);
    if (earlier !== undefined) return { instanceId: earlier, isNew: false };
    if (await this.#hasToAskAgain(req)) return 'ask again';
    const state = query.get('state') ?? '';
    const begun = isPending(req, state) ? undefined : this.#begun.find(req, state);
    // What this browser has not begun is refused at once.
    if (begun === undefined && !isPending(req, state)) {
      return { instanceId: await this.#deps.installer.finish(req.session, query), isNew: true };
    }
    return inReplacementTurn(this.#deps.redis, req, async () => {
      const wasKnown = isKnown(req);
      if (!(await refreshSession(req)) && wasKnown) {
        disownSession(req);
        return 'ask again';
      }
      if (begun) req.session.pendingInstalls = [...(req.session.pendingInstalls ?? []), begun];
      let asksAgain = false;
      try {
        const isFirst = !isPending(req, state) || (await this.#claim(state));
        const outcome = await (isFirst
          ? this.#finishInTurn(req, query, state)
          : this.#afterEarlierClick(req, query, state));
        asksAgain = outcome === 'ask again';
        return outcome;
      } finally {
        // Who asks again has to show once more that this browser began, as its newer session may not know that.
        if (!asksAgain) this.#begun.forget(req, res, state);
      }
    });
  }

  async #finishInTurn(req: Request, query: URLSearchParams, state: string): Promise<CallbackOutcome> {
    let instanceId: string;
    try {
      instanceId = await this.#deps.installer.finish(req.session, query);
    } catch (error) {
      const spending = this.#change(req, async () => {
        if (!(await refreshSession(req))) return disownSession(req);
        spend(req.session, state);
        await saveSession(req);
      });
      // Where Redis is away for that, too, the claim of the state keeps it spent.
      await spending.catch(() => undefined);
      throw explainSpent(error);
    }
    return this.#enter(req, query, state, instanceId).catch((error: unknown) => {
      throw explainUnseen(error);
    });
  }

  #enter(req: Request, query: URLSearchParams, state: string, instanceId: string): Promise<CallbackOutcome> {
    const { redis, control } = this.#deps;
    const sessionId = req.sessionID;
    return this.#change(req, async () => {
      // What other tabs did meanwhile is kept.
      if (await refreshSession(req)) {
        spend(req.session, state);
        if (await this.#enterWithNewId(req, req.session, instanceId, query))
          return { instanceId, isNew: true };
      }
      // A turn that ran out, as its process or Redis stood still, has let another tab's install replace the session.
      if ((await new LaterSession(redis, sessionId).read()) !== undefined) {
        await this.#late.leave(query, { instanceId, sessionId }, control);
        disownSession(req);
        return 'ask again';
      }
      // What was ended meanwhile stays so: somebody has logged out.
      await this.#enterWithNewId(req, undefined, instanceId, query);
      return { instanceId, isNew: true };
    });
  }

  /** A turn ends by itself when Redis is away for a while, and a cookie stays: a state is spent once all the same. */
  #claim(state: string): Promise<boolean> {
    return claimOnce(this.#deps.redis, `install-claim:${digest(state)}`, CLAIM_SECONDS);
  }

  /** A click whose process stood still has lost its turn, and may be about to finish. */
  async #afterEarlierClick(req: Request, query: URLSearchParams, state: string): Promise<CallbackOutcome> {
    const until = performance.now() + EARLIER_CLICK.waitMs;
    while (performance.now() < until) {
      await sleep(EARLIER_CLICK.everyMs);
      const became = await this.#handOver(req, query);
      if (became === 'ended') return 'ask again';
      const instanceId = became && (await this.#earlierInstance(req, query));
      if (instanceId !== undefined) return { instanceId, isNew: false };
      const late = await this.#late.find(query, this.#deps.control);
      if (late !== undefined) return this.#enter(req, query, state, late);
    }
    throw new InstallError('state', 'This consent page has been used before.');
  }

  /**
   * A session id that somebody planted before the install must not see what the install brings.
   *
   * @param before the session until now, if it is kept anywhere
   * @returns false when that has ended meanwhile
   */
  async #enterWithNewId(
    req: Request,
    before: InstalledSession | undefined,
    instanceId: string,
    query: URLSearchParams,
  ): Promise<boolean> {
    const { pendingInstalls, finishedInstalls = [] } = before ?? {};
    const finished = {
      stateDigest: digest(query.get('state') ?? ''),
      codeDigest: digest(query.get('code') ?? ''),
      instanceId,
    };
    const installed: InstalledSession = {
      ...grantAccess(before ?? {}, instanceId, await this.#deps.control.accessGeneration(instanceId)),
      ...(pendingInstalls?.length ? { pendingInstalls } : {}),
      finishedInstalls: [finished, ...finishedInstalls].slice(0, MAX_FINISHED_INSTALLS),
      flash: { tone: 'good', text: 'Authorized. The sync is on its way.' },
    };
    const name = handoverName(req, query);
    const isReplaced = await replaceSession(req, installed, {
      isKept: before !== undefined,
      logOutFollows: true,
      pointer: name === undefined ? undefined : { name, seconds: HANDOVER_SECONDS },
    });
    if (isReplaced) await takeRenewal(this.#deps.redis, req.sessionID);
    return isReplaced;
  }

  /**
   * Where the same callback led before, if this session has been here with it: a reload, or the back button.
   *
   * @throws InstallError `state` when a spent state comes with another code: somebody went back to the consent
   * page and approved it once more, maybe for another company, which the earlier instance is not
   */
  async #earlierInstance(req: Request, query: URLSearchParams): Promise<string | undefined> {
    const stateDigest = digest(query.get('state') ?? '');
    const finished = req.session.finishedInstalls?.find((install) => install.stateDigest === stateDigest);
    if (!finished) return undefined;
    if (finished.codeDigest !== digest(query.get('code') ?? '')) {
      throw new InstallError(
        'state',
        'This consent page has been used before, for an install that is finished.',
      );
    }
    const { instanceId } = finished;
    return (await mayAccess(req.session, instanceId, this.#deps.control)) ? instanceId : undefined;
  }

  /** Leads who missed the answer into the session that it was for. */
  async #handOver(req: Request, query: URLSearchParams): Promise<'entered' | 'ended' | undefined> {
    const { redis } = this.#deps;
    const name = handoverName(req, query);
    const session = name === undefined ? null : await within(redis.get(name));
    if (name === undefined || session === null) return undefined;
    if (await adoptSession(req, session.slice(SESSION_PREFIX.length))) return 'entered';
    // Logged out of, or replaced by a later install, whose cookie the browser may have by now.
    await within(redis.del(name));
    disownSession(req);
    return 'ended';
  }

  #change<Result>(req: Request, work: () => Promise<Result>): Promise<Result> {
    return inChangeTurn(this.#deps.redis, req.sessionID, work);
  }

  async #hasToAskAgain(req: Request): Promise<boolean> {
    if (!(await sentEndedSession(this.#deps.redis, req))) return false;
    disownSession(req);
    return true;
  }
}

/** Whether the browser came with a session that holds something, which another request may replace meanwhile. */
function isKnown(req: Request): boolean {
  return req.session.instances !== undefined || req.session.pendingInstalls !== undefined;
}

function isPending(req: Request, state: string): boolean {
  return req.session.pendingInstalls?.some((pending) => pending.state === state) ?? false;
}

function spend(session: InstalledSession, state: string): void {
  session.pendingInstalls = session.pendingInstalls?.filter((pending) => pending.state !== state) ?? [];
}

function handoverName(req: Request, query: URLSearchParams): string | undefined {
  const [cookie, state, code] = [sessionCookie(req), query.get('state'), query.get('code')];
  return cookie && state && code ? `install-session:${digest(cookie, state, code)}` : undefined;
}
