import type { Logger } from '../runtime/logging.ts';
import type { Tokens } from './tokens.ts';

/** Rotations under way at the same time. */
const AT_ONCE = 4;

/** A sweep begins no rotation after this, in milliseconds: the next sweep is about to come. */
const SWEEP_MS = 25_000;

/**
 * Renews every refresh token that is due (Authentication, 8). What fails stays due for the next sweep.
 *
 * @param signal ends the sweep between two tokens
 */
export async function rotateTokens(tokens: Tokens, logger: Logger, signal: AbortSignal): Promise<void> {
  const endsAt = performance.now() + SWEEP_MS;
  const due = (await tokens.dueForRotation()).values();
  const rotateNext = async () => {
    for (const read of due) {
      if (signal.aborted || performance.now() >= endsAt) return;
      const instanceId = read.instance_id;
      await tokens.rotate(read).then(
        () => logger.info({ instanceId }, 'tokens renewed'),
        (error: unknown) => logger.warn({ instanceId, err: error }, 'tokens could not be renewed'),
      );
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, rotateNext));
}
