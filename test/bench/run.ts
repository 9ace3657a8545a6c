import { availableParallelism, cpus, loadavg, platform, release, totalmem } from 'node:os';

/** A bench writes what it finds while it runs. @param rows the part of it that is asked for; all of it when empty */
export type Bench = (write: (text: string) => void, rows: readonly string[]) => Promise<void>;

/** How a bench is loaded, and which rows it knows; without a pattern it says so itself. */
interface Entry {
  load: () => Promise<Bench>;
  rows?: RegExp;
}

const NO_ROWS = /^(?!)/;

/** Every bench, by the name that the command line takes. Only what is asked for is loaded. */
const BENCHES: Readonly<Record<string, Entry>> = {
  limit: { load: async () => (await import('./limit/limit.ts')).limitBench },
  first: { load: async () => (await import('./first.ts')).first, rows: /^(?:sqlite|postgres)$/ },
  sandbox: { load: async () => (await import('./sandbox-pages.ts')).sandboxPages, rows: NO_ROWS },
  cost: {
    load: async () => (await import('./cost.ts')).cost,
    rows: /^(?:\d+|profile|store|sqlite|postgres)$/,
  },
  scale: {
    load: async () => (await import('./scale.ts')).scale,
    rows: /^(?:\d+|latency\d+|sqlite|postgres)$/,
  },
  'second-run': {
    load: async () => (await import('./second-run.ts')).secondRun,
    rows: /^(?:\d+|sqlite|postgres)$/,
  },
  million: { load: async () => (await import('./million.ts')).million, rows: /^(?:\d+|sqlite|postgres)$/ },
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
const strange = asked.flatMap(({ name, rows }) =>
  rows.filter((row) => BENCHES[name]?.rows?.test(row) === false).map((row) => `${name}:${row}`),
);
if (strange.length > 0) {
  process.stderr.write(`There is no row ${strange.join(', ')}; docs/performance.md says which there are.\n`);
  process.exit(1);
}
const write = (text: string) => void process.stdout.write(text);
write(
  `${platform()} ${release()}, ${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, ${(totalmem() / GIB).toFixed(0)} GiB, Node ${process.versions.node}; load before: ${(loadavg()[0] ?? 0).toFixed(1)}\n`,
);
for (const [name, { load }] of Object.entries(BENCHES)) {
  const named = asked.find((one) => one.name === name);
  if (asked.length > 0 && named === undefined) continue;
  write(`\n${name}: `);
  await (await load())(write, named?.rows ?? []);
}
