import type { RequestHandler } from 'express';
import { WebError } from './web-error.ts';

/** Methods that change nothing here (RFC 9110, section 9.2.1). */
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** What the browser calls its own pages' requests, and those that a person makes by hand (Fetch Metadata). */
const OWN_SITES = new Set(['same-origin', 'none']);

/**
 * Refuses what another site's page sends in a person's name, before anything looks at it. Browsers say where a
 * request comes from in two headers, of which not every one is there; the token in each form stands behind both.
 *
 * @param publicUrl an origin
 */
export function refuseCrossSite(publicUrl: string): RequestHandler {
  return (req, _res, next) => {
    if (SAFE_METHODS.has(req.method)) return next();
    const site = req.get('sec-fetch-site') ?? 'none';
    // Our own pages send no referrer, so their origin comes as "null".
    const origin = req.get('origin') ?? 'null';
    const own = ['null', publicUrl, `${req.protocol}://${req.get('host')}`];
    if (OWN_SITES.has(site) && own.includes(origin)) return next();
    throw new WebError(
      403,
      'From another site',
      'Another site sent this in your name, so nothing was done.',
      {
        advice: 'Do it from the app’s own pages.',
      },
    );
  };
}

/**
 * Refuses what a page loads, of any site, instead of the person that looks at it: as an image, in a frame or ahead of a
 * click. A browser says what a request is for (Fetch Metadata); one that does not is believed.
 */
export const refuseEmbedded: RequestHandler = (req, _res, next) => {
  const isPage = (req.get('sec-fetch-dest') ?? 'document') === 'document';
  if (isPage && req.get('sec-purpose') === undefined) return next();
  throw new WebError(
    403,
    'Not from within a page',
    'This address is there for a browser that follows a link.',
    {
      advice: 'Open the app’s own page, and install from there.',
    },
  );
};
