import { InstallError } from '../auth/install-errors.ts';
import { StoreError } from '../store/database.ts';
import { InstallErrorPage } from './install-error-pages.ts';
import { StoreUnavailableError, WebError } from './web-error.ts';

const RETRY_SECONDS = 5;

/** What Redis and its client say of an outage, where they have no code for it. */
const REDIS_OUTAGE =
  /^(?:Command timed out|Connection is closed|Socket timeout\.|LOADING|READONLY|OOM|MISCONF|MASTERDOWN|NOREPLICAS)/;

const UNREACHABLE_CODES = new Set(['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EPIPE', 'ENOTFOUND']);

function field(error: unknown, name: 'code' | 'status' | 'name'): unknown {
  return typeof error === 'object' && error !== null ? (error as Record<string, unknown>)[name] : undefined;
}

/** Whether the database or Redis is away, which passes, rather than a mistake of ours, which does not. */
function isUnavailable(error: unknown): boolean {
  if (error instanceof StoreError || error instanceof StoreUnavailableError) return true;
  if (field(error, 'name') === 'MaxRetriesPerRequestError') return true;
  if (error instanceof Error && REDIS_OUTAGE.test(error.message)) return true;
  const code = field(error, 'code');
  return typeof code === 'string' && UNREACHABLE_CODES.has(code);
}

function explainClientError(status: number): WebError {
  if (status === 413) {
    return new WebError(413, 'Too large', 'The form that arrived is larger than any form of this app.');
  }
  return new WebError(status, 'Bad request', 'The app cannot make sense of this request.', {
    advice: 'Go back, reload the page and try again.',
  });
}

/** Turns whatever was thrown into the error that the person sees; nothing internal gets through. */
export function explainError(error: unknown): WebError {
  if (error instanceof WebError) return error;
  if (error instanceof InstallError) return new InstallErrorPage(error);
  if (isUnavailable(error)) {
    return new WebError(
      503,
      'Not available right now',
      'The app cannot use its database or Redis at the moment. Nothing is lost.',
      {
        advice:
          'Wait a few seconds, then try again. If it stays, tell the people who run the app the request id below.',
        retryAfterSeconds: RETRY_SECONDS,
        cause: error,
      },
    );
  }
  const status = field(error, 'status');
  if (typeof status === 'number' && status >= 400 && status < 500) return explainClientError(status);
  return new WebError(
    500,
    'Something went wrong',
    'The app made a mistake. It has been written to the log.',
    {
      advice: 'Try again. If it stays, tell the people who run the app the request id below.',
      cause: error,
    },
  );
}
