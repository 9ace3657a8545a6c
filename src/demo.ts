import { commandArguments } from './contract/command-arguments.ts';
import { listCompanies, listRequests } from './demo/companies.ts';
import { startParts } from './demo/parts.ts';
import { labelOf, ProgressBars } from './demo/progress-bars.ts';
import { summarize, summaryTable } from './demo/summary.ts';
import { DemoError, syncCompany } from './demo/sync-company.ts';
import { RESOURCES } from './integration/resources.ts';

const ALL = '--all';
const all = commandArguments(`The demo takes nothing, or ${ALL}: npm run demo -- ${ALL}`, [ALL]).has(ALL);
const say = (text: string) => process.stdout.write(`${text}\n`);

const { appUrl, sandboxUrl, shutdown } = await startParts();
try {
  await demonstrate();
  await shutdown.stop('the demo is over');
} catch (error) {
  const reason =
    error instanceof DemoError ? error.message : error instanceof Error ? error.stack : String(error);
  // Whoever interrupts it takes its parts away, and needs no reason.
  if (!shutdown.isStopping) process.stderr.write(`\n  The demo failed. ${reason}\n\n`);
  await shutdown.stop('the demo failed', 1);
}

async function demonstrate(): Promise<void> {
  const bySize = await listCompanies(sandboxUrl);
  // One alone is that of some 40 pages: more than a few, and done before a window is over.
  const companies = all ? bySize : bySize.slice(1, 2);
  const resources = RESOURCES.map(({ name }) => name);
  say(`\n  Installing ${companies.map(({ name }) => name).join(', ')} through the service's consent page,`);
  say(`  then copying contacts and conversations at up to 120 requests a minute each.\n`);

  const bars = new ProgressBars();
  const labels = companies.flatMap((company) => resources.map((resource) => labelOf(company, resource)));
  const width = Math.max(...labels.map(({ length }) => length));
  for (const company of companies) bars.add(company, resources, width);
  shutdown.add('progress bars', () => bars.stop());
  const startedAt = performance.now();
  const synced = await Promise.all(
    companies.map((company) => syncCompany(appUrl, company, (status) => bars.show(company, status))),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  bars.stop();

  const rows = await Promise.all(
    synced.map(async (one) => summarize(one, await listRequests(sandboxUrl, one.company.id))),
  );
  say(`\n${summaryTable(rows, seconds)}\n`);
  const refused = rows.reduce((total, row) => total + row.refused, 0);
  if (refused > 0)
    throw new DemoError(`The service refused ${refused} requests with 429: the limit was not kept.`);
}
