import type { HttpBrowser } from './http-browser.ts';
import { isSynced, type Status, type World } from './world.ts';

/** Presses "Sync now", and waits until both lists have come to the end of a run that began after it. */
export async function syncAgain(
  world: World,
  browser: HttpBrowser,
  id: string,
  timeoutMs?: number,
): Promise<Status> {
  const began = startTimes(await world.status(browser, id));
  await world.press(browser, id, 'sync');
  const isNew = (status: Status) => startTimes(status).every((time, index) => time !== began[index]);
  return world.waitForStatus(browser, id, 'synced again', (now) => isSynced(now) && isNew(now), timeoutMs);
}

function startTimes({ resources }: Status): (string | null)[] {
  return [resources.contacts.started_at, resources.conversations.started_at];
}
