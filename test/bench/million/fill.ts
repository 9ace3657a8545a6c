import { Agent, request } from 'undici';
import { type ListPage, readListPage } from '../../../src/client/list-page.ts';
import type { Database } from '../../../src/store/database.ts';
import { PageStore } from '../../../src/store/pages.ts';
import type { RunClaim } from '../../../src/store/runs.ts';

/** Puts a whole list into the store, page by page, as a run does. @returns how many records came */
export async function fillStore(
  db: Database,
  claim: RunClaim,
  list: { url: string; token: string },
): Promise<number> {
  const pages = new PageStore(db);
  const agent = new Agent();
  const headers = { authorization: `Bearer ${list.token}` };
  const fetchPage = async (url: string): Promise<ListPage> => {
    const answer = await request(url, { dispatcher: agent, headers });
    const bytes = Buffer.from(await answer.body.arrayBuffer());
    if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${bytes.toString('utf8', 0, 300)}`);
    return readListPage(bytes);
  };
  const key = { instance_id: claim.instanceId, resource: claim.resource };
  let records = 0;
  try {
    for (let coming: Promise<ListPage> | undefined = fetchPage(list.url); coming !== undefined; ) {
      const page: ListPage = await coming;
      coming = page.next === null ? undefined : fetchPage(page.next);
      const changes = await pages.compare(key, page.read());
      await pages.commit(claim, page, changes, Date.now());
      records += changes.records;
    }
  } finally {
    await agent.close();
  }
  return records;
}
