import { explainError } from './error-explain.ts';
import type { Flash } from './session.ts';
import { WebError } from './web-error.ts';

/** Where a store is away after what a form asked for is done, the page says that it is: the next one cannot. */
export function explainDone(error: unknown, { text }: Flash, dashboard: string): unknown {
  const { status, title, retryAfterSeconds } = explainError(error);
  if (status !== 503) return error;
  return new WebError(
    status,
    title,
    `${text} The app cannot reach its own store at the moment to show the dashboard.`,
    {
      advice: 'Wait a few seconds, then open the dashboard. The form need not be sent again.',
      back: { address: dashboard, text: 'Open the dashboard' },
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
      cause: error,
    },
  );
}
