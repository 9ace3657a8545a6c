import { describe, expect, it } from 'vitest';
import { createWorld, instanceOf } from './support/world.ts';

describe('3. A callback that is double-clicked or reloaded makes one instance and ends on its dashboard.', async () => {
  const world = await createWorld();
  await world.start();

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
});
