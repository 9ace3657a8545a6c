/** How often it is looked, in milliseconds. */
const LOOK_EVERY_MS = 5_000;

/** Whether something can be worked with, as this process saw it last. */
interface HealthWatch {
  readonly isWell: boolean;
  close(): void;
}

/**
 * Looks every few seconds whether something can be worked with.
 *
 * @param check throws what is wrong
 * @param told.onTrouble once when it begins
 * @param told.onWell once when it is over
 */
export function watchHealth(
  check: () => Promise<void>,
  told: { onTrouble?: (error: unknown) => void; onWell?: () => void } = {},
): HealthWatch {
  let isWell = true;
  let isLooking = false;
  const look = async () => {
    // One that takes longer than the pause is not overtaken.
    if (isLooking) return;
    isLooking = true;
    try {
      await check();
      if (!isWell) told.onWell?.();
      isWell = true;
    } catch (error) {
      if (isWell) told.onTrouble?.(error);
      isWell = false;
    } finally {
      isLooking = false;
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return {
    get isWell() {
      return isWell;
    },
    close: () => clearInterval(timer),
  };
}
