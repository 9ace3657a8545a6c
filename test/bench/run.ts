import { availableParallelism, cpus, platform } from 'node:os';
import { sandboxPages } from './sandbox-pages.ts';

/** Every bench, by the name that the command line takes: it answers the text that is printed. */
const BENCHES: Readonly<Record<string, () => Promise<string>>> = { sandbox: sandboxPages };

const named = process.argv.slice(2);
const unknown = named.filter((name) => !Object.hasOwn(BENCHES, name));
if (unknown.length > 0) {
  process.stderr.write(
    `There is no bench ${unknown.join(', ')}; there are: ${Object.keys(BENCHES).join(', ')}.\n`,
  );
  process.exit(1);
}
process.stdout.write(
  `${platform()}, ${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, Node ${process.versions.node}\n`,
);
for (const [name, bench] of Object.entries(BENCHES)) {
  if (named.length > 0 && !named.includes(name)) continue;
  process.stdout.write(`\n${name}: ${await bench()}\n`);
}
