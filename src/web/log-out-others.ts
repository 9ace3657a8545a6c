import type { Request } from 'express';
import type { SessionData } from 'express-session';
import { formTooOld } from './csrf.ts';
import { generationSeen, keepAccess } from './instance-access.ts';
import { refreshSession, replaceSession } from './session-actions.ts';
import { inChangeTurn, inReplacementTurn } from './session-changes.ts';
import { takeRenewal } from './session-cookie.ts';
import type { WebDependencies } from './web-dependencies.ts';
import { notFound, StoreUnavailableError, WebError } from './web-error.ts';

/**
 * Logs every browser but this one out of an instance. Sessions of others do not see it any more, and this one gets a new
 * id, so that who has a copy of its cookie is among the others.
 *
 * @throws the error of a form that is too old when the session was replaced meanwhile: nothing is done then
 * @throws WebError 404 when this browser does not see the instance any more: somebody else was first
 * @throws WebError 403 when this browser has logged out meanwhile, in another tab: the others are logged out
 * @throws WebError 503 when the others are logged out, and it cannot be told whether this browser is
 */
export function logOutOthers(
  { redis, control }: Pick<WebDependencies, 'redis' | 'control'>,
  req: Request,
  instanceId: string,
): Promise<void> {
  const { sessionID } = req;
  return inReplacementTurn(redis, req, () =>
    inChangeTurn(redis, sessionID, async () => {
      if (!(await refreshSession(req))) throw formTooOld;
      // The wait for the turn may have been long: whoever was logged out meanwhile must not log the others out.
      const seen = generationSeen(req.session, instanceId);
      const next = seen === undefined ? undefined : await control.endAccess(instanceId, seen);
      if (next === undefined) throw notFound();
      // A form of the old session is not good in the new one.
      const { cookie: _cookie, csrfToken: _csrfToken, ...content } = { ...req.session };
      keepAccess(content, instanceId, next);
      await goOnWithNewId(req, content);
      // Where Redis goes away here, it is renewed another time; the others are out.
      await takeRenewal(redis, req.sessionID).catch(() => undefined);
    }),
  );
}

async function goOnWithNewId(req: Request, content: Partial<SessionData>): Promise<void> {
  const replacing = replaceSession(req, content, { isKept: true, logOutFollows: false, pointer: undefined });
  const isReplaced = await replacing.catch((error: unknown) => {
    throw explainUnsure(error);
  });
  if (isReplaced) return;
  throw new WebError(
    403,
    'Logged out',
    'Every other browser is logged out of this company, and this one has logged out meanwhile, too.',
    { advice: 'Install the app again to see the company.' },
  );
}

function explainUnsure(error: unknown): unknown {
  if (!(error instanceof StoreUnavailableError)) return error;
  return new WebError(
    503,
    'Not available right now',
    'Other browsers are logged out of this company, and this one may be, too.',
    {
      advice: 'Wait a few seconds, then open the front page. What is not there any more, install again.',
      cause: error,
    },
  );
}
