import type { CopiedLog } from './copy-log.ts';

/** Well beyond what the log comes to before whoever commits copies it, in pages of 4 KB: some 740 MB. */
const LONG_LOG_PAGES = 180_000;

/** A page and its head, as they stand in the log. */
const PAGE_BYTES = 4_096 + 24;

/**
 * Notices that the log grows without end, as it does for as long as somebody reads what was before: a shell with a query
 * open, or a backup that takes long.
 */
export class KeptLog {
  readonly #longLogPages: number;
  #isTold = false;

  /** @param longLogPages from so many pages of 4 KB on, it is told */
  constructor(longLogPages = LONG_LOG_PAGES) {
    this.#longLogPages = longLogPages;
  }

  /**
   * Takes note of what copying has left.
   *
   * @returns the size of the log in MB, when it is to be told: once, until the log has begun anew
   */
  note(copied: CopiedLog | undefined): number | undefined {
    if (copied === undefined) return undefined;
    const { pages, isKept } = copied;
    if (pages < this.#longLogPages) this.#isTold = false;
    else if (isKept && !this.#isTold) {
      this.#isTold = true;
      return Math.round((pages * PAGE_BYTES) / 1_000_000);
    }
    return undefined;
  }
}
