import { InstallError } from './install-types.ts';

/**
 * How long installs that may hold a grant are waited for when the process ends, in milliseconds: the service may end the
 * older grant of a company by the newer one. What remains of the ten seconds that a shutdown has is for their pages, and
 * for closing all else.
 */
const ENDING_MS = 6_500;

/** The installs of a process that are at the service, or come from there with a grant. */
export class InstallsUnderWay {
  readonly #running = new Set<Promise<unknown>>();
  readonly #cut = Promise.withResolvers<never>();
  readonly #onCutOff: () => void;
  #isEnding = false;

  /** @param onCutOff told of each that the end of the process has overtaken */
  constructor(onCutOff: () => void) {
    this.#onCutOff = onCutOff;
    // Nobody may be there to be cut off.
    this.#cut.promise.catch(() => undefined);
  }

  /**
   * Does what has an install ask the service.
   *
   * @throws InstallError `stopping` when the process ends: nothing has been done; `cut_off` when it has to end before
   *   that is done
   */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#isEnding) {
      throw new InstallError(
        'stopping',
        'The app is being stopped: it has not asked the service for anything.',
      );
    }
    const running = Promise.race([work(), this.#cut.promise]);
    const ended = running.catch(() => undefined);
    this.#running.add(ended);
    try {
      return await running;
    } finally {
      this.#running.delete(ended);
    }
  }

  /** Begins the end: none is begun any more, and those under way have some seconds. */
  end(): void {
    this.#isEnding = true;
    setTimeout(() => {
      // Of one whose browser has gone nobody else would say it.
      for (const _install of this.#running) this.#onCutOff();
      this.#cut.reject(
        new InstallError(
          'cut_off',
          'The app had to stop before the service, or its own database, had answered.',
        ),
      );
    }, ENDING_MS).unref();
  }

  /** Resolves when none is under way any more. */
  async settled(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }
}
