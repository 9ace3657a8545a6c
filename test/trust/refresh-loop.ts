import { setTimeout as sleep } from 'node:timers/promises';
import { openDatabase } from '../../src/store/open-database.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { Vault } from '../../src/tokens/vault.ts';

/** How long a refresh is under way, in milliseconds. */
const ANSWER_MS = 3;

// A process of the app, as far as tokens go: refreshes the tokens of random instances until it is told
// to end, each refresh a new generation of both tokens, under the first of its own keys, and says what it stored last.
const [, , url = '', keys = '', name = ''] = process.argv;
const store = new TokenStore(await openDatabase(url));
const vault = new Vault(
  keys.split(',').map((entry) => {
    const [id = '', key = ''] = entry.split(':');
    return { id, key: Buffer.from(key, 'base64') };
  }),
);
const ids = (await store.listSealed('', 100_000)).map(({ instance_id }) => instance_id);
let ending = false;
process.on('SIGTERM', () => {
  ending = true;
});
process.stdout.write('refreshing\n');

const stored: Record<string, { version: number; text: string }> = {};
for (let count = 0; !ending; count++) {
  const instanceId = ids[Math.floor(Math.random() * ids.length)] ?? '';
  const row = await store.find(instanceId);
  if (row === undefined) throw new Error('an instance is gone');
  // What a refresh needs to read before it asks the service.
  vault.open(row.refresh_token, { instanceId, purpose: 'refresh_token' });
  // Meanwhile the service answers.
  await sleep(ANSWER_MS);
  const text = `${name}-${count}`;
  const written = await store.replace(
    {
      ...row,
      access_token: vault.seal(`at-${text}`, { instanceId, purpose: 'access_token' }),
      refresh_token: vault.seal(`rt-${text}`, { instanceId, purpose: 'refresh_token' }),
    },
    row.version,
  );
  if (written) stored[instanceId] = { version: row.version + 1, text };
}
process.stdout.write(`stored ${JSON.stringify(stored)}\n`);
process.exit(0);
