import { describe, expect, it } from 'vitest';
import type { HttpBrowser, Page } from '../support/http-browser.ts';
import type { SandboxCompany } from './support/sandbox-control.ts';
import { createWorld, instanceOf } from './support/world.ts';

describe('2. Two tabs that install at once both end on their dashboards, and the browser sees both companies.', async () => {
  const world = await createWorld();
  await world.startWeb();

  type Step = 'begin one' | 'begin two' | 'finish one' | 'finish two';

  /** The ways in which two tabs of a browser, with one cookie jar, interleave. The steps of a row run at once. */
  const orders: Record<string, Step[][]> = {
    'one after the other': [['begin one'], ['finish one'], ['begin two'], ['finish two']],
    'begun in turn, finished in turn': [['begin one'], ['begin two'], ['finish one'], ['finish two']],
    'begun in turn, the second finished first': [
      ['begin one'],
      ['begin two'],
      ['finish two'],
      ['finish one'],
    ],
    'begun at once, finished in turn': [['begin one', 'begin two'], ['finish one'], ['finish two']],
    'begun at once, the second finished first': [['begin one', 'begin two'], ['finish two'], ['finish one']],
    'begun in turn, finished at once': [['begin one'], ['begin two'], ['finish one', 'finish two']],
    'begun and finished at once': [
      ['begin one', 'begin two'],
      ['finish one', 'finish two'],
    ],
    'the second begun while the first finishes': [['begin one'], ['finish one', 'begin two'], ['finish two']],
  };

  class Tab {
    readonly #browser: HttpBrowser;
    readonly #company: SandboxCompany;
    #callback: URL | undefined;
    #end: Page | undefined;

    constructor(browser: HttpBrowser, company: SandboxCompany) {
      this.#browser = browser;
      this.#company = company;
    }

    async begin(): Promise<void> {
      this.#callback = await world.authorize(this.#browser, this.#company);
    }

    async finish(): Promise<void> {
      this.#end = await this.#browser.get(this.#callback ?? '');
    }

    get instance(): string {
      if (this.#end === undefined) throw new Error('not finished');
      expect(this.#end.text()).toContain(this.#company.name);
      return instanceOf(this.#end);
    }
  }

  const browsers = ['in a new browser', 'in a browser that has installed before'];
  const cases = Object.entries(orders).flatMap(([title, steps]) =>
    browsers.map((which) => ({ title, which, steps })),
  );

  it.each(cases)('$title, $which', async ({ title, which, steps }) => {
    const browser = world.browser();
    const earlier: string[] = [];
    if (which !== browsers[0]) {
      const company = await world.control.addCompany({ name: `Earlier ${title}` });
      earlier.push(await world.install(browser, company));
    }
    const one = new Tab(browser, await world.control.addCompany({ name: `One ${title}` }));
    const two = new Tab(browser, await world.control.addCompany({ name: `Two ${title}` }));
    const run = (step: Step) => {
      const tab = step.endsWith('one') ? one : two;
      return step.startsWith('begin') ? tab.begin() : tab.finish();
    };
    for (const row of steps) await Promise.all(row.map(run));
    const all = [...earlier, one.instance, two.instance];
    expect(new Set(all).size).toBe(all.length);
    const front = await browser.get('/');
    for (const id of all) {
      expect(front.body).toContain(`"/instances/${id}"`);
      expect((await browser.get(`/instances/${id}`)).status).toBe(200);
    }
  });

  it('works for two tabs that install the same company', async () => {
    const browser = world.browser();
    const company = await world.control.addCompany({ name: 'Same' });
    const callbacks = [await world.authorize(browser, company), await world.authorize(browser, company)];
    const [one, two] = await Promise.all(callbacks.map((callback) => browser.get(callback)));
    expect(instanceOf(one as Page)).toBe(instanceOf(two as Page));
  });
});
