import { setTimeout as sleep } from 'node:timers/promises';
import type { ChangeHandler } from '../changes/change-handler.ts';
import { control, type DemoCompany, type SeenRequest } from './companies.ts';
import { DemoError } from './install-company.ts';

const POLL_EVERY_MS = 100;
/** Far longer than the app needs: it looks for changes every few seconds. */
const LOST_AFTER_MS = 60_000;

/** Ids of changed conversations that the handler was given. */
const given = new Set<string>();

/** The demo's handler: it replies once to each conversation that changes after the copy. */
export const demoHandler: ChangeHandler = async ({ resource, changes }) => {
  if (resource !== 'conversations') return;
  const ids = changes.filter(({ change }) => change === 'changed').map(({ id }) => String(id));
  for (const id of ids) given.add(id);
  return async (_tx, outbox) => {
    for (const id of ids) {
      const body = { body: 'Thank you! We are looking into it.' };
      await outbox.replyToConversation({ conversation_id: id }, body, { key: `demo:${id}` });
    }
  };
};

async function waitFor(what: string, isThere: () => boolean | Promise<boolean>): Promise<void> {
  const endsAt = performance.now() + LOST_AFTER_MS;
  while (!(await isThere())) {
    if (performance.now() > endsAt) throw new DemoError(`${what} is missing after a minute.`);
    await sleep(POLL_EVERY_MS);
  }
}

/**
 * Changes a conversation at the service, and waits until the handler has it, and its reply is at the service.
 *
 * @returns what happened, for people
 * @throws DemoError if one of them does not happen, or the reply comes twice
 */
export async function proveChange(sandboxUrl: string, { id: companyId }: DemoCompany): Promise<string> {
  const change = { resource: 'conversations', change: 1 };
  const { changed } = await control<{ changed: string[] }>(
    sandboxUrl,
    `companies/${companyId}/records`,
    change,
  );
  const startedAt = performance.now();
  const seconds = () => ((performance.now() - startedAt) / 1_000).toFixed(1);
  const [id = ''] = changed;
  await waitFor('The change', () => given.has(id));
  const arrived = seconds();
  const replies = `requests?method=POST&path=/conversations/${id}/messages`;
  const seen = () => control<SeenRequest[]>(sandboxUrl, replies);
  await waitFor('The reply', async () => (await seen()).length > 0);
  const [reply, ...more] = await seen();
  if (reply?.status !== 201 || more.length > 0) throw new DemoError('The reply was refused, or sent twice.');
  return `  A conversation changed at the service. The handler had it ${arrived} s later, as a check found it.
  Its reply went out by the outbox, once, ${seconds()} s after the change.`;
}
