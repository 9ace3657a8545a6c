import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import { InstallError } from '../auth/install-errors.ts';
import { StoreError } from '../store/database.ts';
import { InstallErrorPage, startAddress } from './install-error-pages.ts';
import type { RenderPage } from './render.ts';
import { notFound, WebError } from './web-error.ts';

const RETRY_SECONDS = 5;

/** Programs read these addresses: errors are always JSON. */
const MACHINE_PATHS = /\/(?:status|[^/]+\.(?:ndjson|csv))$/;

/** The error that a person sees. Nothing internal gets through. */
function explainError(error: unknown, installUrl: string): WebError {
  if (error instanceof WebError) return error;
  if (error instanceof InstallError) return new InstallErrorPage(error, installUrl);
  if (error instanceof StoreError) {
    const message = 'The app cannot use its database at the moment. Nothing is lost.';
    return new WebError(503, 'Not available right now', message, {
      advice: 'Wait a few seconds, then try again.',
      needsHelp: true,
      retryAfterSeconds: RETRY_SECONDS,
      cause: error,
    });
  }
  const status = typeof error === 'object' && error !== null && 'status' in error ? error.status : undefined;
  if (status === 413) return new WebError(413, 'Too large', 'This form is larger than any form of the app.');
  if (typeof status === 'number' && status >= 400 && status < 500) {
    const advice = 'Go back, reload the page and try again.';
    return new WebError(status, 'Bad request', 'The app cannot read this request.', { advice });
  }
  const message = 'The app made a mistake. It has been written to the log.';
  const options = { advice: 'Try again.', needsHelp: true, cause: error };
  return new WebError(500, 'Something went wrong', message, options);
}

export const unknownAddress: RequestHandler = () => {
  throw notFound();
};

/** express-session skips a request without a path (`OPTIONS *`), but later handlers expect a session. */
export const refusePathless: RequestHandler = (req, _res, next) => {
  if (!req.path.startsWith('/')) throw notFound();
  next();
};

/** The last handler: a page (or `_error` as JSON) with the request's id. Details go to the log alone. */
export function errorPages(renderPage: RenderPage, installUrl: string): ErrorRequestHandler {
  return (thrown: unknown, req, res, _next) => {
    const error = explainError(thrown, installUrl);
    const { log } = res.locals;
    // A WebError has the words for the person. The log gets its cause.
    const err = thrown instanceof WebError ? (thrown.cause ?? thrown) : thrown;
    if (thrown instanceof InstallError && thrown.kind !== 'store') {
      const { kind, message: reason, cause } = thrown;
      log.info({ kind, reason, err: cause }, 'install refused');
    } else if (error.status >= 500) log.error({ err }, error.title);
    else log.debug({ title: error.title, reason: error.message }, 'request refused');
    if (res.headersSent) {
      // Half an answer is out. A broken connection says that it is not the whole.
      if (!res.writableEnded) res.destroy();
      return;
    }
    answer(req, res, error);
  };

  function answer(req: Request, res: Response, error: WebError): void {
    const { status, title, message } = error;
    const { advice = '', needsHelp, retryAfterSeconds, headers, links = [] } = error.options;
    res.set({ ...headers, 'Cache-Control': 'no-store' });
    if (retryAfterSeconds !== undefined) res.setHeader('Retry-After', retryAfterSeconds);
    if (MACHINE_PATHS.test(req.path) || req.accepts(['html', 'json']) === 'json') {
      res.status(status).json({ _error: { status, title, message, request_id: res.locals.requestId } });
      return;
    }
    // Offered for unknown ids too, so that it reveals none.
    const isSignIn = status === 404 && links.length === 0 && /^\/instances\/[^/]/.test(req.path);
    // A form is not sent again: its instance is where the browser comes back to.
    const returnTo = req.method === 'POST' ? req.path.split('/').slice(0, 3).join('/') : req.originalUrl;
    const signIn = { address: startAddress(installUrl, returnTo), text: 'Sign in with the service' };
    renderPage(res, status, 'error', {
      error: { status, title, message, advice, needsHelp },
      links: isSignIn ? [signIn] : links,
      isSignIn,
      outcome: error instanceof InstallErrorPage ? error.outcome : '',
    });
  }
}
