import type { Request } from 'express';
import type { Flash } from './session.ts';

/** More than anybody installs by hand; keeps a session's size bounded. */
const MAX_INSTANCES_PER_SESSION = 100;

function settle(resolve: () => void, reject: (error: unknown) => void) {
  return (error: unknown): void => {
    if (error) reject(error);
    else resolve();
  };
}

/** Writes the session now. A redirect has to wait for it: the browser may be back before the answer has ended. */
export function saveSession(req: Request): Promise<void> {
  return new Promise((resolve, reject) => req.session.save(settle(resolve, reject)));
}

/**
 * Reads the session anew, as another tab may have changed it while this request waited for the service.
 * A session that has ended meanwhile stays as this request knows it.
 */
export async function refreshSession(req: Request): Promise<void> {
  const known = req.session;
  await new Promise<void>((resolve) => known.reload(() => resolve()));
}

/** Replaces the session by an empty one with a new id; the old id is worth nothing afterwards. */
export function regenerateSession(req: Request): Promise<void> {
  return new Promise((resolve, reject) => req.session.regenerate(settle(resolve, reject)));
}

/** Puts an instance first in the list of those that this browser may see. */
export function rememberInstance(known: string[] | undefined, instanceId: string): string[] {
  return [instanceId, ...(known ?? []).filter((id) => id !== instanceId)].slice(0, MAX_INSTANCES_PER_SESSION);
}

/** The message that waits for the next page, which takes it away. */
export function takeFlash(req: Request): Flash | undefined {
  const flash = req.session.flash;
  if (flash) delete req.session.flash;
  return flash;
}
