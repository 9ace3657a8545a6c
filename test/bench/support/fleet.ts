import type { BareCompany } from './bare-run.ts';
import type { BenchApp } from './bench-app.ts';
import type { BenchCompany, BenchSandbox } from './bench-sandbox.ts';

/** The largest add-on: loops without a budget meet no limit with it. */
const ADDON_RPM = 100_000;
const AT_ONCE = 16;

/** Does something for each, some at the same time; the results in the order of the items. */
async function forEach<Item, Result>(
  items: readonly Item[],
  work: (item: Item) => Promise<Result>,
): Promise<Result[]> {
  const results: Result[] = [];
  const turns = items.entries();
  const run = async () => {
    for (const [at, item] of turns) results[at] = await work(item);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, run));
  return results;
}

/** Adds companies of one size to the sandbox. */
export function addCompanies(
  sandbox: BenchSandbox,
  count: number,
  size: { contacts: number; conversations: number },
): Promise<BenchCompany[]> {
  return forEach(Array.from({ length: count }), () =>
    sandbox.addCompany({ plan: 'enterprise', addon_rpm: ADDON_RPM, ...size }),
  );
}

/** Installs the app at each of them; no sync is asked for. @returns the instances' ids, in the companies' order */
export function installAll(
  bench: BenchApp,
  sandbox: BenchSandbox,
  companies: readonly BenchCompany[],
): Promise<string[]> {
  return forEach(companies, async (company) => bench.install(company, await sandbox.authorize(company)));
}

/** What the bare loop needs of them. */
export function bareCompanies(companies: readonly BenchCompany[]): BareCompany[] {
  return companies.map(({ id, api_tokens }) => ({ id, token: api_tokens[0]?.token ?? '' }));
}
