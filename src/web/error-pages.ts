import type { ErrorRequestHandler, Request, RequestHandler, Response } from 'express';
import { explainError } from './error-explain.ts';
import { InstallErrorPage } from './install-error-pages.ts';
import type { RenderPage } from './render.ts';
import { notFound, WebError } from './web-error.ts';

/** Addresses that programs read: their errors are JSON whatever the program says that it accepts. */
const MACHINE_PATHS = /\/(?:status|live|[^/]+\.ndjson)$/;

function wantsJson(req: Request): boolean {
  return MACHINE_PATHS.test(req.path) || req.accepts(['html', 'json']) === 'json';
}

function answer(req: Request, res: Response, error: WebError, renderPage: RenderPage): void {
  res.set({ ...error.headers, 'Cache-Control': 'no-store' });
  if (error.retryAfterSeconds !== undefined) res.setHeader('Retry-After', error.retryAfterSeconds);
  if (wantsJson(req)) {
    const { status, title, message } = error;
    res.status(status).json({ _error: { status, title, message, request_id: res.locals.requestId } });
    return;
  }
  renderPage(res, error.status, 'error', {
    error,
    failedInstall: error instanceof InstallErrorPage ? error : undefined,
  });
}

/** Answers what no route knows. */
export const unknownAddress: RequestHandler = () => {
  throw notFound();
};

/** Goes before the sessions, which skip a request without a path (`OPTIONS *`): later handlers count on a session. */
export const refusePathless: RequestHandler = (req, _res, next) => {
  if (!req.path.startsWith('/')) throw notFound();
  next();
};

/** The last handler: one clear page (or `_error` as JSON) with the request's id; the details go to the log alone. */
export function errorPages(renderPage: RenderPage): ErrorRequestHandler {
  return (thrown: unknown, req, res, _next) => {
    const error = explainError(thrown);
    const log = res.locals.log;
    // A WebError only words its cause for the person: the log gets the cause.
    const err = thrown instanceof WebError ? (thrown.cause ?? thrown) : thrown;
    if (error.status >= 500) log.error({ err }, error.title);
    else log.debug({ title: error.title, reason: error.message }, 'request refused');
    if (res.headersSent) {
      // Half an answer is out: breaking the connection is the only way left to say that it is not the whole.
      if (!res.writableEnded) res.destroy();
      return;
    }
    answer(req, res, error, renderPage);
  };
}
