import { type Permit, RateBudget } from '../../src/client/budget/rate-budget.ts';
import { readListPage } from '../../src/client/list-page.ts';
import { readRateHeaders } from '../../src/client/rate-headers.ts';
import { createLogger } from '../../src/runtime/logging.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import { PageStore } from '../../src/store/pages.ts';
import { type ListKey, openWithRuns, type PageTaker } from './bare-store.ts';

/**
 * Takes pages as the app owes it, with nothing around: a permit of the budget for each in one call, a page compared with
 * the copy by hashes, written under the run's fence with what was seen and what the index has to learn. No queue, no
 * claims, no own logic, no thread. What a page costs here, no engine that keeps these promises can go below.
 *
 * @param url of a file that is not there yet
 */
export async function openDutifulStore(
  url: string,
  lists: readonly ListKey[],
  redisUrl: string,
): Promise<PageTaker> {
  const db = await openWithRuns(url, lists);
  const pages = new PageStore(db);
  const redis = createRedis(redisUrl, 'general', createLogger({ logLevel: 'silent', production: true }));
  const budget = new RateBudget(redis);
  const permits = new Map<string, Permit>();
  const nameOf = ({ company, resource }: ListKey) => `${company} ${resource}`;
  return {
    async begin(list) {
      if (permits.has(nameOf(list))) return;
      for (;;) {
        const admission = await budget.acquire(list.company, `/${list.resource}`);
        if (admission.permit === undefined) continue;
        permits.set(nameOf(list), admission.permit);
        return;
      }
    },
    async take(list, bytes, headers) {
      const { company, resource } = list;
      const permit = permits.get(nameOf(list));
      if (permit === undefined) throw new Error(`no permit for ${nameOf(list)}`);
      permits.delete(nameOf(list));
      const single = Object.fromEntries(
        Object.entries(headers).map(([name, value]) => [name, String(value)]),
      );
      const page = readListPage(bytes);
      const settlement = { answer: { rate: readRateHeaders(single, Date.now()) } };
      if (page.next === null) await budget.settle(permit, settlement);
      else {
        const admission = await budget.exchange(permit, settlement);
        if (admission.permit !== undefined) permits.set(nameOf(list), admission.permit);
      }
      const changes = await pages.compare({ instance_id: company, resource }, page.read());
      await pages.commit({ instanceId: company, resource, fence: 1 }, page, changes, Date.now());
      return { records: changes.records, next: page.next };
    },
    async close() {
      await db.destroy();
      redis.disconnect();
    },
  };
}
