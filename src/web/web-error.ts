interface WebErrorOptions extends ErrorOptions {
  /** The one thing to do. */
  advice?: string;
  /** Whether the page shows the support address. */
  needsHelp?: boolean;
  retryAfterSeconds?: number;
  /** Buttons, the first one prominent. */
  links?: { address: string; text: string }[];
  headers?: Record<string, string>;
}

/** An error page, or its JSON. The texts are for a person. */
export class WebError extends Error {
  readonly status: number;
  readonly title: string;
  readonly options: WebErrorOptions;

  constructor(status: number, title: string, message: string, options: WebErrorOptions = {}) {
    super(message, options);
    this.name = 'WebError';
    this.status = status;
    this.title = title;
    this.options = options;
  }
}

/** One answer for unknown addresses and for other people's: it does not tell which. */
export function notFound(): WebError {
  return new WebError(404, 'Not found', 'This browser sees nothing at this address.');
}

/** For a browser whose access another one has ended: with a colleague's log-out, or a disconnect. */
export function signedOut(): WebError {
  const message =
    'Somebody logged this browser out of the company, or disconnected it. The copy does not depend on who is signed in.';
  return new WebError(404, 'You were signed out', message);
}
