import type { RequestHandler } from 'express';
import { WebError } from './web-error.ts';

/** Methods that change nothing here (RFC 9110, section 9.2.1). */
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Refuses forms that another site's page sends in a person's name. Browsers say where a request comes from by Fetch
 * Metadata; those that do not (and all, by plain http from another machine) send the origin with a form.
 *
 * @param publicUrl an origin
 */
export function refuseCrossSite(publicUrl: string): RequestHandler {
  return (req, _res, next) => {
    const site = req.get('sec-fetch-site');
    const isOwn =
      site === undefined ? req.get('origin') === publicUrl : site === 'same-origin' || site === 'none';
    if (SAFE_METHODS.has(req.method) || isOwn) return next();
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
 * Refuses what a page loads instead of the person that looks at it: as an image, in a frame or ahead of a click. A browser
 * says what a request is for (Fetch Metadata); one that does not is believed.
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
