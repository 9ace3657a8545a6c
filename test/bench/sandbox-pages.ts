import type { Walked, WalkOrder } from './page-walker.ts';
import type { Up, Usage } from './sandbox-process.ts';
import { Child } from './support/child.ts';
import { table } from './table.ts';

/** As many clients walk at the same time, each through another company. */
const WALKERS = 6;
const WARM_UP_PAGES = 3_000;
const MEASURED_PAGES = 30_000;
/** The most that there is: the limit is not what is measured. */
const ADDON_RPM = 100_000;
const MIB = 1024 * 1024;

const LISTS = ['contacts', 'conversations'] as const;
const SIZES = [1_000, 1_000_000];

interface Company {
  api_tokens: { token: string }[];
}

async function addCompany({ origin }: Up, records: number): Promise<string> {
  const response = await fetch(`${origin}/_sandbox/companies`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      name: 'Bench',
      plan: 'enterprise',
      addon_rpm: ADDON_RPM,
      contacts: records,
      conversations: records,
    }),
  });
  if (!response.ok) throw new Error(await response.text());
  const company = (await response.json()) as Company;
  return company.api_tokens[0]?.token ?? '';
}

async function measure(list: (typeof LISTS)[number], records: number) {
  const sandbox = new Child('sandbox-process.ts', ['--expose-gc']);
  const walkers = new Child('page-walker.ts');
  try {
    const up = await sandbox.said<Up>();
    const walks: WalkOrder['walks'] = [];
    for (let walker = 0; walker < WALKERS; walker++) {
      walks.push({ url: `${up.apiUrl}/${list}?limit=50`, token: await addCompany(up, records) });
    }
    await walkers.ask<Walked>({ walks, pages: WARM_UP_PAGES });
    const before = await sandbox.ask<Usage>({});
    const walked = await walkers.ask<Walked>({ walks, pages: MEASURED_PAGES });
    const after = await sandbox.ask<Usage>({});
    const cpuS = (after.cpuMs - before.cpuMs) / 1000;
    return {
      list,
      'records each': records,
      pages: walked.pages,
      'KB/page': walked.bytes / walked.pages / 1000,
      'pages/s': walked.pages / (walked.wallMs / 1000),
      'pages/CPU-s': walked.pages / cpuS,
      'MB/s': walked.bytes / 1e6 / (walked.wallMs / 1000),
      'RSS before, MiB': before.rssBytes / MIB,
      'RSS after, MiB': after.rssBytes / MIB,
      'heap after, MiB': after.heapBytes / MIB,
    };
  } finally {
    sandbox.end();
    walkers.end();
  }
}

/**
 * How many pages of 50 records the sandbox serves, to clients that follow `next` over HTTP with keep-alive. The clients
 * are another process; a CPU-second is one of the sandbox's process alone, so what else runs on the machine counts little.
 */
export async function sandboxPages(write: (text: string) => void): Promise<void> {
  const rows: Awaited<ReturnType<typeof measure>>[] = [];
  for (const list of LISTS) for (const records of SIZES) rows.push(await measure(list, records));
  write(`pages of the sandbox
${WALKERS} clients in a process of their own, each walks through another company's list by \`next\`, one request at a time.
A CPU-second is one of the sandbox's process; nothing is cached, so every page is made anew.

${table(rows)}
`);
}
