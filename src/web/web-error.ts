export interface WebErrorOptions extends ErrorOptions {
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
  readonly advice: string;
  readonly needsHelp: boolean;
  readonly retryAfterSeconds: number | undefined;
  readonly links: { address: string; text: string }[];
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

/** One answer for unknown addresses and for other people's: it does not tell which. */
export function notFound(): WebError {
  return new WebError(404, 'Not found', 'This browser sees nothing at this address.');
}
