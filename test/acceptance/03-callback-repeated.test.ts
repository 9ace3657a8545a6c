import { describe, expect, it } from 'vitest';
import { createWorld, instanceOf } from './support/world.ts';

describe('3. A callback that is double-clicked or reloaded makes one instance and ends on its dashboard.', async () => {
  const world = await createWorld();
  await world.startAll();

  it('answers both clicks with the same dashboard', async () => {
    const company = await world.control.addCompany({ name: 'Twice' });
    const browser = world.browser();
    const callback = await world.authorize(browser, company);
    const [first, second] = await Promise.all([browser.get(callback), browser.clone().get(callback)]);
    const id = instanceOf(first);
    expect(instanceOf(second)).toBe(id);
    expect((await world.control.tokenRequests()).length).toBe(1);
    expect(instanceOf(await browser.get(callback))).toBe(id);
    await world.waitForSync(browser, id);
    expect((await world.download(browser, id, 'contacts')).length).toBe(5);
  });

  it('answers five clicks of a browser that keeps every answer', async () => {
    const browser = world.browser();
    const callback = await world.authorize(browser, await world.control.addCompany({ name: 'Five' }));
    const mark = await world.control.mark();
    const pages = await Promise.all(Array.from({ length: 5 }, () => browser.get(callback)));
    expect(new Set(pages.map(instanceOf)).size).toBe(1);
    expect((await browser.get('/')).body.match(/href="\/instances\/\w+"/g)?.length).toBe(1);
    expect((await world.control.tokenRequests(mark)).length).toBe(1);
  });

  it('leads a browser that has missed the first answer to the dashboard', async () => {
    const browser = world.browser();
    const callback = await world.authorize(browser, await world.control.addCompany({ name: 'Missed' }));
    const mark = await world.control.mark();
    const missed = await browser.clone().get(callback, { follow: false });
    expect(missed.status).toBe(303);
    const id = instanceOf(await browser.get(callback));
    expect(missed.location?.pathname).toBe(`/instances/${id}`);
    expect((await world.control.tokenRequests(mark)).length).toBe(1);
  });

  it('leads a reload after another install to the same dashboard', async () => {
    const browser = world.browser();
    const callback = await world.authorize(browser, await world.control.addCompany({ name: 'Reloaded' }));
    const id = instanceOf(await browser.get(callback));
    await world.install(browser, await world.control.addCompany({ name: 'Between' }));
    expect(instanceOf(await browser.get(callback))).toBe(id);
  });
});
