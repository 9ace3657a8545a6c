import type { RequestHandler } from 'express';
import { WebError } from './web-error.ts';

/** RFC 9110, section 9.2.1. */
const SAFE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS']);

/**
 * Refuses forms of other sites. Browsers say where a request comes from by Fetch Metadata, but only to https and
 * localhost; otherwise `Origin` decides.
 *
 * @param publicUrl an origin
 */
export function refuseCrossSite(publicUrl: string): RequestHandler {
  return (req, _res, next) => {
    const site = req.get('sec-fetch-site');
    const origin = req.get('origin');
    // A person's own request, as of an extension, names no other site.
    const isPersons = site === 'none' && (origin === undefined || origin === publicUrl);
    const isOwn = site === undefined ? origin === publicUrl : site === 'same-origin' || isPersons;
    if (SAFE_METHODS.has(req.method) || isOwn) return next();
    const message = 'Another site sent this in your name, so nothing was done.';
    throw new WebError(403, 'From another site', message, { advice: 'Do it from the app’s own pages.' });
  };
}

/**
 * Refuses requests of a page (image, frame, prefetch) instead of a person, by Fetch Metadata. A browser without it is
 * believed.
 */
export const refuseEmbedded: RequestHandler = (req, _res, next) => {
  const isPage = (req.get('sec-fetch-dest') ?? 'document') === 'document';
  if (isPage && req.get('sec-purpose') === undefined) return next();
  throw new WebError(403, 'Not from within a page', 'Open this address with a link in a browser.', {
    advice: 'Open the app’s page and install from there.',
  });
};
