import { Router } from 'express';
import { checkedLogOut, formTooOld } from '../csrf.ts';
import type { LiveStreams } from '../live-streams.ts';
import { noStore } from '../security.ts';
import { cookieName, cookieOptions, SESSION_COOKIE } from '../session.ts';
import { endSession } from '../session-actions.ts';

/** Ends the session on the server, and with it everything that the browser may see; the instances go on. */
export function logoutRoutes(live: LiveStreams, https: boolean): Router {
  const router = Router();
  router.post('/logout', noStore, ...checkedLogOut, async (req, res) => {
    const { sessionID } = req;
    if (!(await endSession(req))) throw formTooOld;
    live.endSession(sessionID);
    res.clearCookie(cookieName(SESSION_COOKIE, https), cookieOptions(https));
    res.locals.log.info('logged out');
    res.redirect(303, '/');
  });
  return router;
}
