import { Router } from 'express';
import { checkedLogOut, formTooOld } from '../csrf.ts';
import type { LiveStreams } from '../live-streams.ts';
import { noStore } from '../security.ts';
import { cookieName, cookieOptions, SESSION_COOKIE } from '../session.ts';
import { endSession } from '../session-actions.ts';
import { StoreUnavailableError, WebError } from '../web-error.ts';

/** Redis may do it all the same, as soon as it can: sending the form again would not find the session then. */
function explainUnsure(error: unknown): unknown {
  if (!(error instanceof StoreUnavailableError)) return error;
  return new WebError(
    503,
    'Not available right now',
    'It cannot be told whether this browser is logged out: the app cannot reach its own store at the moment.',
    {
      advice: 'Wait a few seconds, then open the front page. If it still lists companies, log out once more.',
      cause: error,
    },
  );
}

/** Ends the session on the server, and with it everything that the browser may see; the instances go on. */
export function logoutRoutes(live: LiveStreams, https: boolean): Router {
  const router = Router();
  router.post('/logout', noStore, ...checkedLogOut, async (req, res) => {
    const { sessionID } = req;
    const hasEnded = await endSession(req).catch((error: unknown) => {
      throw explainUnsure(error);
    });
    if (!hasEnded) throw formTooOld;
    live.endSession(sessionID);
    res.clearCookie(cookieName(SESSION_COOKIE, https), cookieOptions(https));
    res.locals.log.info('logged out');
    res.redirect(303, '/');
  });
  return router;
}
