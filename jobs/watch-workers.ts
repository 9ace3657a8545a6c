/** How often Redis is asked, in milliseconds. */
const LOOK_EVERY_MS = 3_000;

/** Looks in a row that see no worker before it counts: one that is restarted is soon back. */
const LOOKS = 2;

/** Whether workers run, as this process saw it last. */
export interface WorkersWatch {
  /** How many run; undefined when that cannot be told. */
  readonly count: number | undefined;
  /** Whether none has run for some seconds. */
  readonly areMissing: boolean;
  close(): void;
}

/** @param count how many worker processes take jobs; undefined when that cannot be told */
export function watchWorkers(count: () => Promise<number | undefined>): WorkersWatch {
  let seen: number | undefined;
  let looksWithout = 0;
  const look = async () => {
    seen = await count();
    looksWithout = seen === 0 ? looksWithout + 1 : 0;
  };
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return {
    get count() {
      return seen;
    },
    get areMissing() {
      return looksWithout >= LOOKS;
    },
    close: () => clearInterval(timer),
  };
}
