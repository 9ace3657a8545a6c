import { type Request, type RequestHandler, Router } from 'express';
import { InstallError } from '../../auth/install-errors.ts';
import { CALLBACK_PATH } from '../../contract/routes.ts';
import { clientAddress } from '../client-address.ts';
import { refuseEmbedded } from '../cross-site.ts';
import { instanceAddress } from '../own-instance.ts';
import { RateLimit } from '../rate-limit.ts';
import { noReferrer, noStore } from '../security.ts';
import type { BrowserCookies } from '../sessions.ts';
import type { WebDependencies } from '../web-dependencies.ts';
import { WebError } from '../web-error.ts';
import { LIMIT_WINDOW_MS, WEB_LIMITS } from '../web-limits.ts';

/** A code may be as long as the service likes (RFC 6749, section 4.1.2); one that is a signed document has some KB. */
const MAX_PARAMETER_BYTES = 8 * 1_024;

/** An address of an instance's pages, without parts that lead elsewhere. */
const INSTANCE_PAGE =
  /^(?!.*(?:\/|%2f)(?:\.|%2e){1,2}(?:[/?]|%2f|$))\/instances\/([\w-]+)(?:\/[\w.~%-]+)*(?:\?[\w.~%&=+*-]*)?$/i;
const LONGEST_PATH = 2_000;

/** A connection may be silent for as long as an install takes, in milliseconds. */
const LONGEST_REQUEST_MS = 150_000;

/**
 * Reads the query of the callback from the address as it came.
 *
 * @throws InstallError `malformed` when a parameter stands there twice (RFC 6749, section 3.1, forbids it) or is over 8 KB
 */
function readQuery(address: string): URLSearchParams {
  const start = address.indexOf('?');
  const query = new URLSearchParams(start === -1 ? '' : address.slice(start + 1));
  const names = new Set(query.keys());
  if (names.size < query.size) {
    throw new InstallError('malformed', 'The address carries the same parameter more than once.');
  }
  if ([...query].flat().some((text) => Buffer.byteLength(text) > MAX_PARAMETER_BYTES)) {
    throw new InstallError('malformed', 'The address carries a parameter that is far too long.');
  }
  return query;
}

/** The page that the browser wants to see after signing in; undefined unless it is one of an instance. */
function returnPath(req: Request): string | undefined {
  const path = req.query.return_to;
  return typeof path === 'string' && path.length <= LONGEST_PATH && INSTANCE_PAGE.test(path)
    ? path
    : undefined;
}

/** Back to the page that was asked for, if it is the company's; else the dashboard, which tells that it is another's. */
function landingOf(instanceId: string, returnTo: string | null): string {
  const dashboard = instanceAddress(instanceId);
  const wanted = returnTo === null ? undefined : INSTANCE_PAGE.exec(returnTo)?.[1];
  if (returnTo === null || wanted === undefined) return dashboard;
  return wanted === encodeURIComponent(instanceId)
    ? returnTo
    : `${dashboard}?${new URLSearchParams({ wanted })}`;
}

/** Link checkers send HEAD; it must neither begin an install nor end one. */
const getOnly: RequestHandler = (req, res, next) => {
  if (req.method === 'GET') return next();
  res.setHeader('Allow', 'GET');
  throw new WebError(405, 'Not this way', 'This address is there for a browser that follows a link.');
};

/** The start of the authorization code flow and its way back (Authentication, 4). */
export function installRoutes(deps: WebDependencies, cookies: BrowserCookies): Router {
  const router = Router();
  const max = deps.limits?.installs ?? WEB_LIMITS.installs;
  const limit = new RateLimit(deps.redis, { name: 'install', max, windowMs: LIMIT_WINDOW_MS });
  // Only what a person may have done counts: else any page could use up its visitors' tries.
  const limited: RequestHandler = async (req, _res, next) => {
    await limit.take(clientAddress(req));
    next();
  };

  router.get('/install', getOnly, noStore, refuseEmbedded, limited, async (req, res) => {
    if (deps.publicUrl.startsWith('https:') && !req.secure) {
      // A cookie for https alone would be withheld, and the way back would fail for a reason that nobody could see.
      throw new WebError(
        500,
        'Not set up right',
        'The app is not set up right, so that it cannot be installed.',
        {
          needsHelp: true,
          cause: new Error(
            'PUBLIC_URL is https, but the proxy in front does not send "X-Forwarded-Proto: https"',
          ),
        },
      );
    }
    const { address, nonce } = await deps.installs.begin(req.session.browserId, returnPath(req));
    cookies.setNonce(req, nonce);
    res.redirect(302, address.href);
  });

  router.get(CALLBACK_PATH, getOnly, noStore, noReferrer, refuseEmbedded, limited, async (req, res) => {
    req.setTimeout(LONGEST_REQUEST_MS);
    const query = readQuery(req.originalUrl);
    const { carriedSid, newSid, start } = cookies.newSession(req);
    const { instanceId, isNew, returnTo } = await deps.installs.finish({
      query,
      nonces: cookies.nonces(req),
      carriedSid,
      newSid,
    });
    start();
    // What succeeds does not count: neither this request nor, the first time, the one that began it.
    await limit.giveBack(clientAddress(req), isNew ? 2 : 1);
    if (isNew) res.locals.log.info({ instanceId }, 'installed');
    res.redirect(303, landingOf(instanceId, returnTo));
  });

  return router;
}
