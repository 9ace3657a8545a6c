import { once } from 'node:events';
import { availableParallelism, cpus, loadavg, platform } from 'node:os';
import { closeStages } from './stage.ts';

/** A bench writes its tables while it runs. @param rows the rows that the command asks for; all of them if empty */
export type Bench = (write: (text: string) => void, rows: readonly string[]) => Promise<void>;

/** The benches by name. Only those that the command asks for load. */
const BENCHES: Readonly<Record<string, () => Promise<Bench>>> = {
  limit: async () => (await import('./limit/limit.ts')).limit,
  first: async () => (await import('./first.ts')).first,
  sandbox: async () => (await import('./sandbox.ts')).sandbox,
  cost: async () => (await import('./cost.ts')).cost,
  scale: async () => (await import('./scale.ts')).scale,
  'second-run': async () => (await import('./cost.ts')).secondRun,
  handler: async () => (await import('./handler.ts')).handler,
  freshness: async () => (await import('./freshness.ts')).freshness,
  million: async () => (await import('./million.ts')).million,
  herd: async () => (await import('./herd.ts')).herd,
};

/** `limit:calm-40,guard` asks for two rows of the bench `limit`. */
const asked = process.argv.slice(2).map((argument) => {
  const [name = '', rows = ''] = argument.split(':');
  return { name, rows: rows === '' ? [] : rows.split(',') };
});
const unknown = asked.find(({ name }) => !Object.hasOwn(BENCHES, name));
if (unknown !== undefined) {
  const known = Object.keys(BENCHES).join(', ');
  process.stderr.write(`There is no bench "${unknown.name}". The benches are: ${known}.\n`);
  process.exit(1);
}
const write = (text: string) => void process.stdout.write(text);
const cpu = `${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}`;
write(`${platform()}, ${cpu}, Node ${process.versions.node}, load ${loadavg()[0]?.toFixed(1)}\n`);
const interrupted = Promise.race([once(process, 'SIGINT'), once(process, 'SIGTERM')]).then(() => {
  throw new Error('The bench was interrupted.');
});
try {
  for (const [name, load] of Object.entries(BENCHES)) {
    const named = asked.find((one) => one.name === name);
    if (asked.length > 0 && named === undefined) continue;
    write(`\n${name}: `);
    const bench = await load();
    await Promise.race([bench(write, named?.rows ?? []), interrupted]);
  }
} finally {
  await closeStages();
}
process.exit();
