import { availableParallelism, cpus, loadavg, platform, release, totalmem } from 'node:os';

/** A bench writes what it finds while it runs. @param rows the part of it that is asked for; all of it when empty */
export type Bench = (write: (text: string) => void, rows: readonly string[]) => Promise<void>;

/** Every bench, by the name that the command line takes. Only what is asked for is loaded. */
const BENCHES: Readonly<Record<string, () => Promise<Bench>>> = {
  limit: async () => (await import('./limit/limit.ts')).limitBench,
  first: async () => (await import('./first.ts')).firstBench,
  sandbox: async () => (await import('./sandbox-pages.ts')).sandboxPages,
  cost: async () => (await import('./cost.ts')).cost,
  scale: async () => (await import('./scale.ts')).scale,
  'second-run': async () => (await import('./second-run.ts')).secondRun,
  million: async () => (await import('./million.ts')).million,
};

const GIB = 1024 ** 3;

/** `limit:calm-40,guard` asks for two rows of the bench `limit`. */
const asked = process.argv.slice(2).map((argument) => {
  const [name = '', rows = ''] = argument.split(':');
  return { name, rows: rows === '' ? [] : rows.split(',') };
});
const unknown = asked.filter(({ name }) => !Object.hasOwn(BENCHES, name)).map(({ name }) => name);
if (unknown.length > 0) {
  process.stderr.write(
    `There is no bench ${unknown.join(', ')}; there are: ${Object.keys(BENCHES).join(', ')}.\n`,
  );
  process.exit(1);
}
const write = (text: string) => void process.stdout.write(text);
write(
  `${platform()} ${release()}, ${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, ${(totalmem() / GIB).toFixed(0)} GiB, Node ${process.versions.node}; load before: ${(loadavg()[0] ?? 0).toFixed(1)}\n`,
);
for (const [name, load] of Object.entries(BENCHES)) {
  const named = asked.find((one) => one.name === name);
  if (asked.length > 0 && named === undefined) continue;
  write(`\n${name}: `);
  await (await load())(write, named?.rows ?? []);
}
