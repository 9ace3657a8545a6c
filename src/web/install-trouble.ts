import { explainError } from './error-explain.ts';
import { InstallFailedError } from './install-failure-pages.ts';
import { WebError } from './web-error.ts';

/** Where a store is away in the middle of an install a reload would not help: the state is spent, and the code may be. */
export function explainSpent(error: unknown): unknown {
  const explained = explainError(error);
  if (explained instanceof InstallFailedError) return error;
  const { status, title, message, retryAfterSeconds } = explained;
  return new InstallFailedError(status, title, message, {
    advice:
      'Wait a minute, then start again. If it stays, tell the people who run the app the request id below.',
    ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    cause: error,
  });
}

/** Where a store is away after the install the page says what became of that, and what a reload may lead to. */
export function explainUnseen(error: unknown): unknown {
  const { status, title, retryAfterSeconds } = explainError(error);
  if (status !== 503) return error;
  return new WebError(
    status,
    title,
    'The company is installed, but the app cannot reach its own store at the moment to show it in this browser. Nothing is lost.',
    {
      advice:
        'Wait a few seconds, then reload the page. If it says that this install cannot be finished, install again to see the company here.',
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      cause: error,
    },
  );
}
