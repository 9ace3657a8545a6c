import { Presence } from '../../src/runtime/presence.ts';

/** Counts as alive in the directory of the first argument, by the name of the second, until it is killed. */
const [, , dir, id] = process.argv;
if (dir === undefined || id === undefined) throw new Error('the directory and the name are needed');
await new Presence(dir, id).enter();
process.stdout.write('entered\n');
setInterval(() => undefined, 60_000);
