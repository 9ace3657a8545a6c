import { type Row, table } from './report.ts';
import type { Bench } from './run.ts';
import { bareLists, openStage } from './stage.ts';

/** Clients at the same time, each with the list of another company. */
const CLIENTS = 6;
const WARM_UP_MS = 3_000;
const MEASURED_MS = 20_000;

/** How many pages of 50 records the sandbox serves to clients that follow `next`. */
export const sandbox: Bench = async (write) => {
  const lines: Row[] = [];
  for (const resource of ['contacts', 'conversations'])
    for (const records of [1_000, 1_000_000]) lines.push(await measure(resource, records));
  write(`pages of the sandbox
${CLIENTS} clients in a process of their own, one request each at a time. A CPU-second is one of the sandbox's process.

${table(lines)}

`);
};

async function measure(resource: string, records: number): Promise<Row> {
  await using stage = await openStage({});
  const companies = Array.from({ length: CLIENTS }, () =>
    stage.addCompany({ contacts: records, conversations: records }),
  );
  const lists = bareLists(stage.sandbox.apiUrl, companies, 50).filter(({ name }) => name.endsWith(resource));
  const walk = stage.startBareLoop();
  await walk({ lists, atOnce: CLIENTS, forMs: WARM_UP_MS });
  const before = process.cpuUsage();
  const { pages, wallMs } = await walk({ lists, atOnce: CLIENTS, forMs: MEASURED_MS });
  const { user, system } = process.cpuUsage(before);
  return {
    list: resource,
    'records each': records,
    pages,
    'pages/s': (pages / wallMs) * 1_000,
    'pages/CPU-s': (pages / (user + system)) * 1_000_000,
  };
}
