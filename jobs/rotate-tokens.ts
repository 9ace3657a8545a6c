import { toServiceError } from '../src/client/errors.ts';
import type { ServiceTime } from '../src/client/service-time.ts';
import type { Logger } from '../src/runtime/logging.ts';
import type { Tokens } from '../src/tokens/tokens.ts';

/** Rotations under way at the same time. */
const AT_ONCE = 4;

/**
 * Renews every refresh token that is due (Authentication, 8). What fails stays due, and the next sweep tries again.
 *
 * @param signal ends the sweep between two tokens
 */
export async function rotateTokens(
  parts: { tokens: Tokens; time: ServiceTime },
  logger: Logger,
  signal: AbortSignal,
): Promise<void> {
  await parts.time.refresh();
  const due = await parts.tokens.dueForRotation();
  const next = due.values();
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      for (const instanceId of next) {
        if (signal.aborted) return;
        await rotate(parts.tokens, instanceId, logger);
      }
    }),
  );
}

async function rotate(tokens: Tokens, instanceId: string, logger: Logger): Promise<void> {
  try {
    await tokens.rotate(instanceId);
    logger.info({ instanceId }, 'tokens renewed');
  } catch (error) {
    logger.warn({ instanceId, err: toServiceError(error) }, 'tokens could not be renewed');
  }
}
