import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { HandlerReport } from './support/handler-report.ts';
import { syncAgain } from './support/lists.ts';
import type { SandboxCompany } from './support/sandbox-control.ts';
import { createWorld } from './support/world.ts';

/** A minute here is a second. */
const CHECK_MS = 1_000;

/** A window of the limit: this company's full run takes ten of them. */
const WINDOW_MS = 1_000;
const LARGE = 100_000;

describe('42. A new or changed record of a list by last activity reaches the handler within two minutes, for about one request a minute and list, during a full run of hours too; a list in another order costs fewer and fewer checks.', async () => {
  const world = await createWorld({
    sandbox: { windowMs: WINDOW_MS },
    env: { CHECK_INTERVAL_SECONDS: String(CHECK_MS / 1_000) },
  });
  const { control } = world;
  const report = new HandlerReport();
  await world.startAll(report.options);

  const installed = (contacts: number, order: 'activity' | 'created') =>
    world.installed({ name: 'Fresh', contacts, conversations: 0, order });
  /** Changes so many contacts, or those with these ids. @returns their ids */
  const change = async ({ id }: SandboxCompany, what: number | string[]) => {
    const records = { resource: 'contacts', change: what };
    return (await control.call<{ changed: string[] }>('POST', `companies/${id}/records`, records)).changed;
  };
  const create = async ({ id }: SandboxCompany) => {
    const records = { resource: 'contacts', create: 1 };
    return (await control.call<{ created: string[] }>('POST', `companies/${id}/records`, records)).created;
  };
  const isTold = (id: string, records: readonly string[], revision?: number) => () => {
    const last = new Map(report.changes(id, 'contacts').map((told) => [told.id, told]));
    return records.every((record) => {
      const document = last.get(record)?.document as { custom_fields: { revision?: number } } | undefined;
      return document !== undefined && document.custom_fields.revision === revision;
    });
  };
  /** The app's requests for pages of contacts. */
  const pages = async (company: SandboxCompany, after: number) =>
    (await world.counted(company, after)).filter(({ path }) => path === '/contacts');

  it('new and changed records arrive by checks of one page', async () => {
    const { company, browser, id } = await installed(900, 'activity');
    await world.waitForDelivery(browser, id);
    const { finished_at } = (await world.status(browser, id)).resources.contacts;
    const mark = await control.mark();
    const changed = await change(company, 7);
    await waitFor(isTold(id, changed, 1), 'the changes to arrive');
    const created = await create(company);
    await waitFor(isTold(id, created), 'the new record to arrive');
    await change(company, changed);
    await waitFor(isTold(id, changed, 2), 'the second changes to arrive');

    // Two requests where a check finds something, and else one; no full run took part.
    const requests = await pages(company, mark);
    const first = requests.filter(({ query }) => !JSON.stringify(query).includes('page_token'));
    expect(requests.length - first.length).toBeLessThanOrEqual(first.length);
    const gaps = first.slice(1).map(({ at }, n) => at - (first[n]?.at ?? 0));
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(CHECK_MS * 0.9);
    const { resources } = await world.status(browser, id);
    expect(resources.contacts).toMatchObject({ state: 'idle', finished_at });
    expect((resources.contacts.checked_at ?? '') > (finished_at ?? '')).toBe(true);
    expect(resources.contacts.full_at).toBe(finished_at);
  });

  it('they arrive while a full run goes on for long', async () => {
    const { company, browser, id } = await installed(LARGE, 'activity');
    const contacts = async () => (await world.status(browser, id)).resources.contacts;
    await waitFor(async () => (await contacts()).pages > 50, 'the first pages');
    // Spread over the list: the run has read some of them, and comes to others last.
    const changed = await change(company, 5);
    await waitFor(isTold(id, changed, 1), 'the changes to arrive');
    const created = await create(company);
    await waitFor(isTold(id, created), 'the new record to arrive');
    expect(await contacts()).toMatchObject({ finished_at: null, error: null });
    expect((await contacts()).records).toBeLessThan(LARGE * 0.9);
    await world.press(browser, id, 'pause');
  });

  it('checks of a list by creation become rarer, and the page says so', async () => {
    const { company, browser, id } = await installed(3_000, 'created');
    await world.waitForSync(browser, id);
    const page = async () => (await browser.get(`/instances/${id}`)).text();
    expect(await page()).not.toContain('Changes arrive with the whole list');
    for (let run = 0; run < 3; run++) {
      // The first page is as it was, so that a check stops there.
      await change(company, 12);
      await syncAgain(world, browser, id);
    }
    expect(await page()).toContain('Changes arrive with the whole list, every hour.');
    const mark = await control.mark();
    const requests = await waitFor(async () => {
      const found = await pages(company, mark);
      return found.length > 0 && found;
    }, 'another check');
    const end = (await world.status(browser, id)).resources.contacts.full_at ?? '';
    expect((requests[0]?.at ?? 0) - Date.parse(end)).toBeGreaterThanOrEqual(7 * CHECK_MS);
  });
});
