/** What an error page says besides what happened. */
export interface WebErrorOptions extends ErrorOptions {
  /** The one thing to do. */
  advice?: string;
  /** Whether the page says where to find help. */
  needsHelp?: boolean;
  retryAfterSeconds?: number;
  /** Buttons, the first one prominent. */
  links?: { address: string; text: string }[];
  headers?: Record<string, string>;
}

/** An answer that is an error page (or its JSON): texts are for the person who reads it. */
export class WebError extends Error {
  readonly status: number;
  readonly title: string;
  readonly advice: string;
  readonly needsHelp: boolean;
  /** Seconds after which a new try makes sense. */
  readonly retryAfterSeconds: number | undefined;
  readonly links: { address: string; text: string }[];
  /** Sent along with the answer. */
  readonly headers: Record<string, string>;

  constructor(status: number, title: string, message: string, options: WebErrorOptions = {}) {
    super(message, options);
    this.name = 'WebError';
    this.status = status;
    this.title = title;
    this.advice = options.advice ?? '';
    this.needsHelp = options.needsHelp ?? false;
    this.retryAfterSeconds = options.retryAfterSeconds;
    this.links = options.links ?? [];
    this.headers = options.headers ?? {};
  }
}

/** The one answer for what does not exist and for what belongs to somebody else: it does not tell which. */
export function notFound(): WebError {
  return new WebError(404, 'Not found', 'There is nothing at this address that this browser may see.');
}
