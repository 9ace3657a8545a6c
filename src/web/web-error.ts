/** What an error page says besides what happened. */
export interface WebErrorOptions extends ErrorOptions {
  advice?: string;
  retryAfterSeconds?: number;
  back?: { address: string; text: string };
  headers?: Record<string, string>;
}

/** An answer that is an error page (or its JSON): texts are for the person who reads it. */
export class WebError extends Error {
  readonly status: number;
  readonly title: string;
  /** What to do now. */
  readonly advice: string;
  /** Seconds after which a new try makes sense. */
  readonly retryAfterSeconds: number | undefined;
  /** Where the page leads besides the front page. */
  readonly back: { address: string; text: string } | undefined;
  /** Sent along with the answer. */
  readonly headers: Record<string, string>;

  constructor(status: number, title: string, message: string, options: WebErrorOptions = {}) {
    super(message, options);
    this.name = 'WebError';
    this.status = status;
    this.title = title;
    this.advice = options.advice ?? '';
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.back = options.back;
    this.headers = options.headers ?? {};
  }
}

/** Redis failed or did not answer in time. */
export class StoreUnavailableError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'StoreUnavailableError';
  }
}

/** The one answer for what does not exist and for what belongs to somebody else: it does not tell which. */
export function notFound(): WebError {
  return new WebError(404, 'Not found', 'There is nothing at this address that this browser may see.', {
    advice:
      'A company shows only in a browser that installed the app for it, until somebody disconnects it or logs other browsers out. If you are its administrator, install again: that deletes nothing of its copy, and leads to it where the service says which company it is.',
  });
}
