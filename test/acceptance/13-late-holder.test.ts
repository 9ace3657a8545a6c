import { describe, expect, it } from 'vitest';
import type { HttpBrowser } from '../support/http-browser.ts';
import type { TestProcess } from '../support/spawn-entry.ts';
import { waitFor } from '../support/wait-for.ts';
import { AppClock } from './support/app-clock.ts';
import { syncAgain } from './support/lists.ts';
import { endLease, storedTokens } from './support/stored-tokens.ts';
import { createWorld } from './support/world.ts';

const HOUR_MS = 60 * 60_000;
/** What the late holder gets: the service knows none of it. */
const LATE_ANSWER = { access_token: 'late-access', refresh_token: 'late-refresh', token_type: 'Bearer' };

describe('13. A holder whose lease has run out overwrites no newer token.', async () => {
  const world = await createWorld({ sandbox: { windowMs: 2_000 } });
  const { control } = world;
  const clock = new AppClock(world, 0);
  await world.startWeb();

  it('stores its answer if nobody else has written meanwhile', async () => {
    const { holder, id, before } = await stopInRefresh();
    await goOnAndEnd(holder);
    expect((await storedTokens(world, id)).access_token).not.toBe(before.access_token);
  });

  it('leaves the tokens of an install that came while it was stopped', async () => {
    const { holder, company, browser, id, before, mark, tokenRequests } = await stopInRefresh();
    expect(await world.install(browser, company)).toBe(id);
    const newer = await storedTokens(world, id);
    expect(newer).not.toEqual(before);
    await goOnAndEnd(holder);
    expect(await storedTokens(world, id)).toEqual(newer);
    await expectGoodTokens(browser, id, () => tokenRequests(mark));
  });

  it('leaves the tokens that another worker refreshed when its lease was over', async () => {
    const { holder, browser, id, before, mark, tokenRequests } = await stopInRefresh();
    const other = await world.startWorker();
    await endLease(world, id);
    const isRefreshed = async () => (await storedTokens(world, id)).access_token !== before.access_token;
    await waitFor(isRefreshed, 'a refresh by another worker');
    const newer = await storedTokens(world, id);
    await goOnAndEnd(holder);
    expect(await storedTokens(world, id)).toEqual(newer);
    await other.stop();
    await expectGoodTokens(browser, id, () => tokenRequests(mark));
  });

  /** A worker that is stopped in the middle of a token request, whose answer comes meanwhile. */
  async function stopInRefresh() {
    const company = await control.addCompany({ name: 'Late' });
    const browser = world.browser();
    const holder = await world.startWorker();
    const id = await world.install(browser, company);
    await world.waitForSync(browser, id);
    const before = await storedTokens(world, id);
    await clock.pass(HOUR_MS + 1_000);
    const match = { path: '/oauth/token', company_id: company.id };
    await control.fault({ match, fault: { status: 200, body: LATE_ANSWER, delay_ms: 1_500 } });
    await world.press(browser, id, 'sync');
    await waitFor(async () => (await control.faults()).at(-1)?.used, 'the refresh');
    await world.stopBetweenWrites(holder);
    const asked = await control.mark();
    await waitFor(async () => (await control.tokenRequests(asked)).length > 0, 'its answer');
    const tokenRequests = async (mark: number) => {
      const requests = await control.tokenRequests(mark);
      return requests.filter(({ company_id }) => company_id === company.id).map(({ status }) => status);
    };
    return { holder, company, browser, id, before, mark: await control.mark(), tokenRequests };
  }

  async function goOnAndEnd(holder: TestProcess): Promise<void> {
    holder.signal('SIGCONT');
    expect(await holder.stop()).toEqual({ code: 0, signal: null });
  }

  /** The copy goes on with them, without another refresh than the newer one. */
  async function expectGoodTokens(browser: HttpBrowser, id: string, asked: () => Promise<number[]>) {
    const worker = await world.startWorker();
    await world.waitForSync(browser, id);
    const { status } = await syncAgain(world, browser, id);
    expect(status).toBe('active');
    expect(await asked()).toEqual([200]);
    await worker.stop();
  }
});
