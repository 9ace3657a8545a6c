import type { Logger } from './logging.ts';

/** A reason mostly follows at the next try: so long an outage without one is not told of as trouble, in milliseconds. */
const REASON_LIMIT_MS = 1_000;

/** The kind of reasons that Redis has not given; and of none at all. */
const NO_REPLY = '';
const NO_REASON = 'none';

/**
 * Tells of the outages of a connection to Redis, each once, with its reason if there is one: a connection may be ended in
 * order. What Redis itself says why is told each thing once, also after another reason: one that restarts may refuse the
 * password then.
 */
export class OutageLog {
  readonly #role: string;
  readonly #logger: Logger;
  readonly #told = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  /** @param role what the connection is for */
  constructor(role: string, logger: Logger) {
    this.#role = role;
    this.#logger = logger;
  }

  /** @param error the reason; without one, none has come */
  tell(error?: Error): void {
    this.forget();
    const kind = kindOf(error);
    if (this.#told.has(kind)) return;
    // Of reasons, the first is told, and what Redis says.
    const isReply = kind !== NO_REPLY && kind !== NO_REASON;
    if (!isReply && [...this.#told].some((told) => told !== NO_REASON)) return;
    this.#told.add(kind);
    // At `warn`: the watch over all of the app tells the outage, once.
    this.#logger.warn({ err: error, role: this.#role }, 'Redis cannot be reached, trying on');
  }

  /** Unless a reason comes, or the end, or somebody was told already. */
  tellSoon(): void {
    if (this.#told.size > 0) return;
    this.#timer ??= setTimeout(() => this.tell(), REASON_LIMIT_MS).unref();
  }

  /** It is not to be told any more what was to be told soon. */
  forget(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Redis can be reached: that is told of outages which nobody was told of, too. */
  end(): void {
    const wasDown = this.#told.size > 0 || this.#timer !== undefined;
    this.forget();
    if (wasDown) this.#logger.info({ role: this.#role }, 'Redis is reachable again');
    this.#told.clear();
  }
}

/** The first word of what Redis says: the rest may differ with each try. */
function kindOf(error: Error | undefined): string {
  if (error === undefined) return NO_REASON;
  return error.name === 'ReplyError' ? (error.message.split(' ')[0] ?? '') : NO_REPLY;
}
