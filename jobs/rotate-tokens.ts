import { toServiceError } from '../src/client/errors.ts';
import type { ServiceTime } from '../src/client/service-time.ts';
import type { Logger } from '../src/runtime/logging.ts';
import type { ReadTokens } from '../src/store/tokens.ts';
import type { Tokens } from '../src/tokens/tokens.ts';

/** Rotations under way at the same time. */
const AT_ONCE = 4;

/** A sweep begins no rotation after so many milliseconds: the next sweep is about to come then. */
const SWEEP_MS = 25_000;

/**
 * Renews every refresh token that is due (Authentication, 8). What fails stays due, and the next sweep tries again. So
 * does what a sweep does not come to because the token route is slow: sweeps must not pile up in the worker's places.
 *
 * @param signal ends the sweep between two tokens; what is under way is for the tokens to end
 * @param lastsMs instead of {@link SWEEP_MS}
 */
export async function rotateTokens(
  parts: { tokens: Tokens; time: ServiceTime },
  logger: Logger,
  signal: AbortSignal,
  lastsMs = SWEEP_MS,
): Promise<void> {
  const endsAt = performance.now() + lastsMs;
  await parts.time.refresh(signal);
  const due = await parts.tokens.dueForRotation();
  const next = due.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const tokens of next) {
        if (signal.aborted || performance.now() >= endsAt) return;
        await rotate(parts.tokens, tokens, logger);
      }
    }),
  );
}

/** A run may have renewed them while the sweep was about others. */
async function rotate(tokens: Tokens, due: ReadTokens, logger: Logger): Promise<void> {
  const { instance_id: instanceId, version } = due;
  try {
    await tokens.rotate(instanceId, version);
    logger.info({ instanceId }, 'tokens renewed');
  } catch (error) {
    logger.warn({ instanceId, err: toServiceError(error) }, 'tokens could not be renewed');
  }
}
