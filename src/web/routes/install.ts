import { createHash } from 'node:crypto';
import { type Request, type RequestHandler, Router } from 'express';
import { CALLBACK_PATH } from '../../contract/routes.ts';
import { InstallError } from '../../install/install-types.ts';
import { readCallbackQuery } from '../callback-query.ts';
import { claimOnce } from '../redis-session-client.ts';
import { noStore } from '../security.ts';
import { refreshSession, regenerateSession, rememberInstance, saveSession } from '../session-actions.ts';
import type { WebDependencies } from '../web-dependencies.ts';
import { WebError } from '../web-error.ts';

/** Longer than a state can live. */
const CLAIM_SECONDS = 15 * 60;

/** Callbacks that a session remembers: enough for the tabs that somebody may go back to. */
const MAX_FINISHED_INSTALLS = 10;

function digest(...parts: string[]): string {
  return createHash('sha256').update(parts.join('\n')).digest('base64url');
}

/**
 * Where the same callback led before, if this session has been here with it: a reload, or the back button.
 *
 * @throws InstallError `state` when a spent state comes with another code: somebody went back to the consent
 * page and approved it once more, maybe for another company, which the earlier instance is not
 */
function earlierInstance(req: Request, query: URLSearchParams): string | undefined {
  const { finishedInstalls = [], instances = [] } = req.session;
  const stateDigest = digest(query.get('state') ?? '');
  const finished = finishedInstalls.find((install) => install.stateDigest === stateDigest);
  if (!finished) return undefined;
  if (finished.codeDigest !== digest(query.get('code') ?? '')) {
    throw new InstallError(
      'state',
      'This consent page has been used before, for an install that is finished.',
    );
  }
  return instances.includes(finished.instanceId) ? finished.instanceId : undefined;
}

/**
 * Makes sure that of two requests at the same time with the same state only one goes on: both have read
 * the session before either spent the state in it.
 */
async function claimState(deps: WebDependencies, req: Request, state: string): Promise<void> {
  if (!req.session.pendingInstalls?.some((pending) => pending.state === state)) return;
  const name = `install-claim:${digest(req.sessionID, state)}`;
  if (!(await claimOnce(deps.redis, name, CLAIM_SECONDS))) {
    throw new InstallError('state', 'This install is being finished already, by another request.');
  }
}

/** A cookie for https alone would be withheld, and the way back would fail for a reason that nobody could see. */
function checkHttps(deps: WebDependencies, req: Request): void {
  if (!deps.publicUrl.startsWith('https:') || req.secure) return;
  throw new WebError(
    500,
    'Not set up right',
    'The app is reached by https, but the proxy in front does not say so.',
    {
      advice: 'The people who run the app have to let the proxy send “X-Forwarded-Proto: https”.',
    },
  );
}

/** Runs the callback; whatever becomes of it, the state is spent and what other tabs did meanwhile is kept. */
async function finish(deps: WebDependencies, req: Request, query: URLSearchParams): Promise<string> {
  const state = query.get('state') ?? '';
  await claimState(deps, req, state);
  try {
    return await deps.installer.finish(req.session, query);
  } finally {
    await refreshSession(req);
    req.session.pendingInstalls = (req.session.pendingInstalls ?? []).filter(
      (pending) => pending.state !== state,
    );
  }
}

/** A session id that somebody planted before the install must not see what the install brings. */
async function enterWithNewId(req: Request, instanceId: string, query: URLSearchParams): Promise<void> {
  const { instances, pendingInstalls, finishedInstalls = [] } = req.session;
  await regenerateSession(req);
  req.session.instances = rememberInstance(instances, instanceId);
  if (pendingInstalls?.length) req.session.pendingInstalls = pendingInstalls;
  const finished = {
    stateDigest: digest(query.get('state') ?? ''),
    codeDigest: digest(query.get('code') ?? ''),
    instanceId,
  };
  req.session.finishedInstalls = [finished, ...finishedInstalls].slice(0, MAX_FINISHED_INSTALLS);
  req.session.flash = { tone: 'good', text: 'Authorized. The sync is on its way.' };
  await saveSession(req);
}

/** Link checkers send HEAD; it must neither hand out a state nor spend one. */
const getOnly: RequestHandler = (req, res, next) => {
  if (req.method === 'GET') return next();
  res.setHeader('Allow', 'GET');
  throw new WebError(405, 'Not this way', 'This address is there for a browser that follows a link.');
};

/** The start of the authorization code flow and its way back (Authentication, 4). */
export function installRoutes(deps: WebDependencies): Router {
  const router = Router();

  router.get('/install', getOnly, noStore, async (req, res) => {
    checkHttps(deps, req);
    const address = deps.installer.start(req.session);
    await saveSession(req);
    res.redirect(302, address.href);
  });

  router.get(CALLBACK_PATH, getOnly, noStore, async (req, res) => {
    const query = readCallbackQuery(req.originalUrl);
    const earlier = earlierInstance(req, query);
    if (earlier) {
      res.redirect(303, `/instances/${encodeURIComponent(earlier)}`);
      return;
    }
    const instanceId = await finish(deps, req, query);
    await enterWithNewId(req, instanceId, query);
    res.locals.log.info({ instanceId }, 'installed');
    res.redirect(303, `/instances/${encodeURIComponent(instanceId)}`);
  });

  return router;
}
