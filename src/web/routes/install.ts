import { type Request, type RequestHandler, Router } from 'express';
import { CALLBACK_PATH } from '../../contract/routes.ts';
import { readCallbackQuery } from '../callback-query.ts';
import { clientAddress } from '../client-address.ts';
import { refuseEmbedded } from '../cross-site.ts';
import { InstallCallback } from '../install-callback.ts';
import type { LiveStreams } from '../live-streams.ts';
import { RateLimit } from '../rate-limit.ts';
import { noStore } from '../security.ts';
import { addressToAskAgain } from '../session-changes.ts';
import type { WebDependencies } from '../web-dependencies.ts';
import { WebError } from '../web-error.ts';
import { LIMIT_WINDOW_MS, WEB_LIMITS } from '../web-limits.ts';

const INSTALL_PATH = '/install';

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

/** Link checkers send HEAD; it must neither hand out a state nor spend one. */
const getOnly: RequestHandler = (req, res, next) => {
  if (req.method === 'GET') return next();
  res.setHeader('Allow', 'GET');
  throw new WebError(405, 'Not this way', 'This address is there for a browser that follows a link.');
};

/** The start of the authorization code flow and its way back (Authentication, 4). */
export function installRoutes(deps: WebDependencies, live: LiveStreams): Router {
  const router = Router();
  const callback = new InstallCallback(deps);
  const max = deps.limits?.installs ?? WEB_LIMITS.installs;
  const limit = new RateLimit(deps.redis, { name: 'install', max, windowMs: LIMIT_WINDOW_MS });
  // Only what a person may have done counts: else any page could use up its visitors' tries.
  const limited: RequestHandler = async (req, _res, next) => {
    await limit.take(clientAddress(req));
    next();
  };

  router.get(INSTALL_PATH, getOnly, noStore, refuseEmbedded, limited, async (req, res) => {
    checkHttps(deps, req);
    const address = await callback.start(req, res);
    res.redirect(302, address?.href ?? addressToAskAgain(req, INSTALL_PATH));
  });

  router.get(CALLBACK_PATH, getOnly, noStore, refuseEmbedded, limited, async (req, res) => {
    const query = readCallbackQuery(req.originalUrl);
    const { sessionID } = req;
    const outcome = await callback.finish(req, res, query);
    // Other tabs come back with the new cookie, and get forms that are good with it.
    if (req.sessionID !== sessionID) live.endSession(sessionID);
    if (outcome === 'ask again') {
      res.redirect(303, addressToAskAgain(req, CALLBACK_PATH, query));
      return;
    }
    const { instanceId, isNew } = outcome;
    // What succeeds does not count: neither this request nor, the first time, the one that began it.
    await limit.giveBack(clientAddress(req), isNew ? 2 : 1);
    if (isNew) res.locals.log.info({ instanceId }, 'installed');
    res.redirect(303, `/instances/${encodeURIComponent(instanceId)}`);
  });

  return router;
}
