/** A state that this browser's session has handed out and that has not come back yet. */
export interface PendingInstall {
  state: string;
  /** Milliseconds since 1970, local clock. */
  createdAt: number;
}

/** The part of the browser's session that an install lives in. */
export interface InstallSession {
  pendingInstalls?: PendingInstall[];
}

/** Why an install ended without an instance; each has a page of its own. */
export type InstallFailure =
  /** state missing, unknown, spent, expired, or from another browser: nothing was sent to the service */
  | 'state'
  /** the person said no at the consent page */
  | 'denied'
  /** the service wants an administrator */
  | 'not_administrator'
  /** the code has expired, was used before, or is not for us */
  | 'code'
  /** the service refused our client id or secret */
  | 'credentials'
  /** the token route or the API cannot be reached */
  | 'unreachable'
  /** the token route or the API answered, but nonsense or 5xx */
  | 'trouble'
  /** the service is asked too often for now (429): at the token route, or within the limit that the company's requests share */
  | 'busy'
  /** the service named another error at the authorize route */
  | 'refused'
  /** the request itself makes no sense (no code, parameters twice, far too long) */
  | 'malformed'
  /** the process ends: nothing was sent to the service */
  | 'stopping'
  /** the process had to end while the install was under way */
  | 'cut_off'
  /** the grant has come, and the database does not take it yet: it is kept, and tried on */
  | 'unwritten'
  /** the grant has come, and the database will not take it until the app is repaired */
  | 'unstored'
  /** the company was disconnected before the grant was stored */
  | 'disconnected';

/** An install that failed; `failure` chooses the page, `message` is safe to show (plain text, escape it). */
export class InstallError extends Error {
  readonly failure: InstallFailure;
  readonly #code: string | undefined;

  constructor(
    failure: InstallFailure,
    message: string,
    options?: ErrorOptions & { code?: string | undefined },
  ) {
    super(message, options);
    this.name = 'InstallError';
    this.failure = failure;
    this.#code = options?.code;
  }

  /** The code of this install: what the log says of it leaves that out, and nothing else does. */
  get ownSecret(): string | undefined {
    return this.#code;
  }
}

/** The OAuth authorization code flow as the web app sees it (Authentication, 4). */
export interface Installer {
  /** Puts a new state into the session and answers the address of the service's authorize route. */
  start(session: InstallSession): URL;
  /**
   * Takes the callback's query: checks and spends the state, exchanges the code, asks whose token it is, stores it.
   *
   * @returns the id of the new or updated instance
   * @throws InstallError for everything that can go wrong
   */
  finish(session: InstallSession, query: URLSearchParams): Promise<string>;
}
