import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { Presence } from '../../src/runtime/presence.ts';

/**
 * Counts as alive in the directory of the first argument, by the name of the second, and enters again as often as the
 * third one says, as its file is removed each time; then it waits until it is killed.
 */
const [, , dir, id, times] = process.argv;
if (dir === undefined || id === undefined) throw new Error('the directory and the name are needed');
const presence = new Presence(dir, id);
await presence.enter();
process.stdout.write('entered\n');
for (let time = 0; time < Number(times); time++) {
  rmSync(join(dir, `${id}.lock`));
  await presence.enter();
}
process.stdout.write('entered again\n');
setInterval(() => undefined, 60_000);
