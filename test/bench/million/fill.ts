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
    const text = await answer.body.text();
    if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${text.slice(0, 300)}`);
    return readListPage(text);
  };
  const key = { instance_id: claim.instanceId, resource: claim.resource };
  let records = 0;
  try {
    for (let coming: Promise<ListPage> | undefined = fetchPage(list.url); coming !== undefined; ) {
      const page: ListPage = await coming;
      coming = page.next === null ? undefined : fetchPage(page.next);
      await pages.commit(claim, page, await pages.compare(key, page), Date.now());
      records += page.results.length;
    }
  } finally {
    await agent.close();
  }
  return records;
}
