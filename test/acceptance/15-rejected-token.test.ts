import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { syncAgain } from './support/lists.ts';
import { createWorld } from './support/world.ts';

describe('15. A 401 on a good token causes one refresh and one retry, then the reason is shown.', async () => {
  const world = await createWorld({ sandbox: { windowMs: 2_000 } });
  const { control } = world;
  await world.startAll();

  const newCompany = async (name: string) => {
    const { company, browser, id } = await world.synced({ name, contacts: 250 });
    return { browser, id, match: { path: '/contacts', company_id: company.id } };
  };

  /** What was asked since a mark, conversations left out: `/contacts 401`. */
  const asked = async (mark: number) => {
    const requests = (await control.requests(mark)).filter(({ path }) => path !== '/conversations');
    return requests.map(({ path, status }) => `${path} ${status}`);
  };

  it('renews a token that was revoked before its time, and goes on', async () => {
    const { browser, id, match } = await newCompany('Revoked');
    const mark = await control.mark();
    await control.fault({ match, fault: { revoke: 'access_token' } });
    const status = await syncAgain(world, browser, id);
    expect(status).toMatchObject({
      status: 'active',
      resources: { contacts: { records: 250, error: null } },
    });
    expect((await control.tokenRequests(mark)).map((entry) => entry.status)).toEqual([200]);
  });

  it('shows the reason after one refresh and one retry, and does not loop', async () => {
    const { browser, id, match } = await newCompany('Rejected');
    const mark = await control.mark();
    await control.fault({ match, fault: { status: 401 }, times: 10_000 });
    await world.press(browser, id, 'sync');
    const shown = await world.waitForStatus(browser, id, ({ resources }) =>
      Boolean(resources.contacts.error),
    );
    expect(shown.status).toBe('active');
    expect((await browser.get(`/instances/${id}`)).text()).toMatch(
      /The service refuses this request\. Authorize/,
    );
    expect((await asked(mark)).slice(0, 3)).toEqual(['/contacts 401', '/oauth/token 200', '/contacts 401']);

    await waitFor(async () => (await asked(mark)).length >= 5, 'further tries');
    expect((await control.tokenRequests(mark)).length).toBe(1);
    const { resources } = await world.status(browser, id);
    expect(resources.conversations).toMatchObject({ state: 'idle', error: null });

    await control.clearFaults();
    const synced = await world.waitForSync(browser, id);
    expect(synced.resources.contacts).toMatchObject({ records: 250, error: null });
  });
});
