import type { RequestHandler } from 'express';
import helmet from 'helmet';

/**
 * Headers for every answer. Pages load only what this app serves: no inline script or style, no frames. Forms go to the app
 * alone; installing is a link.
 */
export function securityHeaders(https: boolean): RequestHandler {
  return helmet({
    contentSecurityPolicy: {
      useDefaults: false,
      directives: {
        defaultSrc: ["'none'"],
        scriptSrc: ["'self'"],
        styleSrc: ["'self'"],
        imgSrc: ["'self'"],
        connectSrc: ["'self'"],
        formAction: ["'self'"],
        frameAncestors: ["'none'"],
        baseUri: ["'none'"],
      },
    },
    // With `no-referrer` browsers send `Origin: null` with a form.
    referrerPolicy: { policy: 'same-origin' },
    strictTransportSecurity: https && { maxAge: 365 * 24 * 60 * 60, includeSubDomains: false },
  });
}

/** For pages of one session: not even the browser caches them. */
export const noStore: RequestHandler = (_req, res, next) => {
  res.setHeader('Cache-Control', 'no-store');
  next();
};

/** For addresses that carry a code. */
export const noReferrer: RequestHandler = (_req, res, next) => {
  res.setHeader('Referrer-Policy', 'no-referrer');
  next();
};
