import { missingKeyMessage } from '../auth/token-cipher.ts';
import { CREDENTIALS_REFUSED } from '../auth/tokens.ts';
import { toServiceError } from '../client/errors.ts';
import type { Database } from '../store/database.ts';
import { failedWith } from '../store/failed-runs.ts';
import type { RunKey } from '../store/runs.ts';
import { PASSING_TROUBLE } from '../store/trouble.ts';
import { isOfRedis, OWN_TROUBLE } from './status-error.ts';

/** What tells that failed runs may go on. */
interface OvercomeParts {
  db: Database;
  /** Throws while Redis cannot be worked with. */
  checkRedis: () => Promise<void>;
  /** The keys that are here. */
  keyIds: readonly string[];
  /** As it was applied to the errors that were kept. */
  hideSecrets: (text: string) => string;
}

/**
 * Finds failed runs that what they failed on may not hold up any more, to be asked again and again by one process:
 *
 * - The key of their tokens was missing, and is here.
 * - The database could not be written, and can be now.
 * - Redis could not be reached, or took no writes, and can be worked with now.
 * - The service refused CLIENT_ID and CLIENT_SECRET, and this process may have been started with the right ones. Only the
 *   service can tell: they are found once, when it is asked for the first time.
 */
export function findOvercome({
  db,
  checkRedis,
  keyIds,
  hideSecrets,
}: OvercomeParts): () => Promise<RunKey[]> {
  let isFirst = true;
  const findRefused = async () => {
    const refused = await failedWith(db, [hideSecrets(CREDENTIALS_REFUSED)]);
    return refused;
  };
  return async () => {
    const unlocked = await failedWith(
      db,
      keyIds.map((id) => hideSecrets(missingKeyMessage(id))),
    );
    const unwritten = await failedWith(
      db,
      // As a run that fails of it says it.
      PASSING_TROUBLE.map((advice) => hideSecrets(toServiceError(new Error(advice)).message)),
    );
    const unqueued = await failedWith(db, [OWN_TROUBLE], isOfRedis);
    const found = [
      ...unlocked,
      ...(await passing(unwritten, () => db.check())),
      ...(await passing(unqueued, checkRedis)),
    ];
    if (!isFirst) return found;
    // Two looks may come at once.
    isFirst = false;
    const refused = await findRefused().catch((error) => {
      isFirst = true;
      throw error;
    });
    return [...found, ...refused];
  };
}

/** These runs, if what held them up is over: it is looked at only where there are any. */
async function passing(runs: readonly RunKey[], check: () => Promise<void>): Promise<readonly RunKey[]> {
  if (runs.length === 0) return [];
  return check().then(
    () => runs,
    () => [],
  );
}
