import type { RequestHandler } from 'express';
import helmet from 'helmet';

/**
 * Headers for every answer. Pages load what this app serves and nothing else: no inline script or style,
 * no frames, forms only back to the app. Installing is a link, so `form-action` needs no other address.
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
    // Under `no-referrer` browsers send `Origin: null` with a form, which tells nobody that it is ours.
    referrerPolicy: { policy: 'same-origin' },
    // A browser obeys this only over https; behind plain http it would be a lie.
    strictTransportSecurity: https && { maxAge: 365 * 24 * 60 * 60, includeSubDomains: false },
  });
}

/** For pages that belong to one session: no cache may keep them, not even the browser's. */
export const noStore: RequestHandler = (_req, res, next) => {
  res.setHeader('Cache-Control', 'no-store');
  next();
};

/** For addresses that carry a code: no page that they lead to may learn of it. */
export const noReferrer: RequestHandler = (_req, res, next) => {
  res.setHeader('Referrer-Policy', 'no-referrer');
  next();
};
