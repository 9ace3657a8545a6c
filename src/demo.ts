import { commandArguments } from './boot.ts';
import { listCompanies, listRequests } from './demo/companies.ts';
import { DemoError } from './demo/install-company.ts';
import { ProgressBars } from './demo/progress-bars.ts';
import { demoHandler, proveChange } from './demo/proof.ts';
import { startParts } from './demo/start-parts.ts';
import { summarize, summaryTable } from './demo/summary.ts';
import { syncCompany } from './demo/sync-company.ts';
import { APP_INFO } from './integration/app-info.ts';
import { RESOURCES } from './integration/resources.ts';

const ALL = '--all';
const usage = `The demo copies one company. To copy all of them: npm run demo -- ${ALL}`;
const all = commandArguments(usage, [ALL]).has(ALL);
const print = (text: string) => process.stdout.write(`${text}\n`);

// With a handler of its own: yours may write made-up records to a real system.
const { appUrl, sandboxUrl, shutdown } = await startParts({
  handler: demoHandler,
  resources: RESOURCES,
  appInfo: APP_INFO,
});
try {
  await demonstrate();
  await shutdown.stop('the demo is over');
} catch (error) {
  const reason =
    error instanceof DemoError ? error.message : error instanceof Error ? error.stack : String(error);
  // After Ctrl-C, errors come from the parts that are closing.
  if (!shutdown.isStopping) process.stderr.write(`\n  The demo failed. ${reason}\n\n`);
  await shutdown.stop('the demo failed', 1);
}

async function demonstrate(): Promise<void> {
  const bySize = await listCompanies(sandboxUrl);
  // The second company has some 40 pages: enough to watch, and done within one rate window.
  const companies = all ? bySize : bySize.slice(1, 2);
  const resources = RESOURCES.map(({ name }) => name);
  print(`\n  Installing ${companies.map(({ name }) => name).join(', ')} through the service's consent page,`);
  print(`  then copying ${resources.join(' and ')} at up to 120 requests a minute for each company.\n`);

  const bars = new ProgressBars(companies, resources);
  shutdown.add('progress bars', () => bars.stop());
  const startedAt = performance.now();
  const synced = await Promise.all(
    companies.map((company) =>
      syncCompany({ appUrl, sandboxUrl }, company, (status) => bars.show(company, status)),
    ),
  );
  const seconds = (performance.now() - startedAt) / 1_000;
  bars.stop();

  const rows = await Promise.all(
    synced.map(async (one) => summarize(one, await listRequests(sandboxUrl, one.company.id))),
  );
  print(`\n${summaryTable(rows, seconds)}\n`);
  const refused = rows.reduce((total, row) => total + row.refused, 0);
  if (refused > 0)
    throw new DemoError(`The service refused ${refused} requests with 429: the app exceeded the limit.`);
  const [company] = companies;
  if (company && resources.includes('conversations')) print(`${await proveChange(sandboxUrl, company)}\n`);
}
