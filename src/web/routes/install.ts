import { type Request, type RequestHandler, Router } from 'express';
import { InstallError } from '../../auth/install-errors.ts';
import { CALLBACK_PATH } from '../../contract/routes.ts';
import { refuseEmbedded } from '../cross-site.ts';
import { instanceAddress } from '../own-instance.ts';
import { clientAddress, RateLimit, WEB_LIMITS } from '../rate-limit.ts';
import type { RenderPage } from '../render.ts';
import { noReferrer, noStore } from '../security.ts';
import type { BrowserCookies } from '../sessions.ts';
import type { WebDependencies } from '../web-dependencies.ts';
import { WebError } from '../web-error.ts';

/** RFC 6749, section 4.1.2, limits no code; a signed document has some KB. */
const MAX_PARAMETER_BYTES = 8 * 1_024;

/** The address of a page of an instance, without `.` and `..`. */
const INSTANCE_PAGE =
  /^(?!.*(?:\/|%2f)(?:\.|%2e){1,2}(?:[/?]|%2f|$))\/instances\/([\w-]+)(?:\/[\w.~%-]+)*(?:\?[\w.~%&=+*-]*)?$/i;
const LONGEST_PATH = 2_000;

/** How long an install may keep its connection silent. */
const LONGEST_REQUEST_MS = 150_000;

/**
 * The callback's query.
 *
 * @throws InstallError `malformed` for a repeated parameter (RFC 6749, section 3.1) or one over 8 KB
 */
function readQuery(address: string): URLSearchParams {
  const query = new URLSearchParams(/\?(.*)/s.exec(address)?.[1]);
  const names = new Set(query.keys());
  if (names.size < query.size) {
    throw new InstallError('malformed', 'The address carries the same parameter more than once.');
  }
  if ([...query].flat().some((text) => Buffer.byteLength(text) > MAX_PARAMETER_BYTES)) {
    throw new InstallError('malformed', 'The address carries a parameter that is far too long.');
  }
  return query;
}

/** The page to open after signing in, if it belongs to an instance. */
function returnPath(req: Request): string | undefined {
  const path = req.query.return_to;
  return typeof path === 'string' && path.length <= LONGEST_PATH && INSTANCE_PAGE.test(path)
    ? path
    : undefined;
}

/** The page that was asked for, if it belongs to the company; else the dashboard, with a message. */
function landingOf(instanceId: string, returnTo: string | null): string {
  const dashboard = instanceAddress(instanceId);
  const wanted = returnTo === null ? undefined : INSTANCE_PAGE.exec(returnTo)?.[1];
  if (returnTo === null || wanted === undefined) return dashboard;
  return wanted === encodeURIComponent(instanceId)
    ? returnTo
    : `${dashboard}?${new URLSearchParams({ wanted })}`;
}

/** The HEAD of a link checker neither begins nor ends an install. */
const getOnly: RequestHandler = (req, res, next) => {
  if (req.method === 'GET') return next();
  res.setHeader('Allow', 'GET');
  throw new WebError(405, 'Not this way', 'Open this address with a link in a browser.');
};

/** Both ends of the authorization code flow (Authentication, 4). */
export function installRoutes(
  deps: WebDependencies,
  cookies: BrowserCookies,
  renderPage: RenderPage,
): Router {
  const router = Router();
  const max = deps.limits?.installs ?? WEB_LIMITS.installs;
  const limit = new RateLimit(deps.redis, 'install', max);
  // Embedded requests are refused before this: else a foreign page could use up its visitors' tries.
  const limited: RequestHandler = async (req, _res, next) => {
    await limit.take(clientAddress(req));
    next();
  };

  router.get('/install', getOnly, noStore, refuseEmbedded, limited, async (req, res) => {
    if (deps.publicUrl.startsWith('https:') && !req.secure) {
      // The browser would withhold the Secure cookie, and the callback would fail without a visible reason.
      const message = 'The app is not set up correctly, so you cannot install it.';
      const hint = 'PUBLIC_URL is https, but the proxy in front does not send "X-Forwarded-Proto: https"';
      throw new WebError(500, 'Not set up right', message, { needsHelp: true, cause: new Error(hint) });
    }
    const { address, nonce } = await deps.installs.begin(req.session.browserId, returnPath(req));
    cookies.setNonce(req, nonce);
    res.redirect(302, address.href);
  });

  router.get(CALLBACK_PATH, getOnly, noStore, noReferrer, refuseEmbedded, limited, async (req, res) => {
    req.setTimeout(LONGEST_REQUEST_MS);
    const query = readQuery(req.originalUrl);
    const { carriedSid, newSid, start } = cookies.newSession(req);
    const finished = await deps.installs.finish({
      query,
      nonces: cookies.nonces(req),
      carriedSid,
      newSid,
    });
    if (finished === undefined) {
      await limit.giveBack(clientAddress(req), 2);
      // The same address again: the next answer says how it ended.
      res.setHeader('Refresh', '1');
      renderPage(res, 202, 'signing-in', {});
      return;
    }
    const { instanceId, isNew, returnTo } = finished;
    start();
    // An install that succeeds does not count: neither this request nor, the first time, the one before it.
    await limit.giveBack(clientAddress(req), isNew ? 2 : 1);
    if (isNew) res.locals.log.info({ instanceId }, 'installed');
    res.redirect(303, landingOf(instanceId, returnTo));
  });

  return router;
}
