import { boot } from './boot.ts';
import { openExistingDatabase } from './store/open-database.ts';
import { TokenStore } from './store/tokens.ts';
import { proveKeys } from './tokens/key-checks.ts';
import { reencryptTokens } from './tokens/reencrypt.ts';
import { reencryptSummary } from './tokens/reencrypt-summary.ts';
import { Vault } from './tokens/vault.ts';

await boot(async ({ config, shutdown }) => {
  const vault = new Vault(config.tokenKeys);
  const db = await openExistingDatabase(config.databaseUrl);
  shutdown.add('database', () => db.destroy());
  const stopping = new AbortController();
  const store = new TokenStore(db);
  await proveKeys({ store, vault });
  process.stdout.write(
    `Encrypting all tokens of ${config.databaseUrl} under the key "${vault.sealingKeyId}".\n`,
  );
  const work = reencryptTokens(
    { store, vault },
    {
      signal: stopping.signal,
      onBatch: (seen, round) =>
        process.stdout.write(`  ${seen} instances looked at${round === 1 ? '' : ' once more'}\n`),
    },
  );
  shutdown.add('work', async () => {
    stopping.abort();
    await work.catch(() => undefined);
  });
  const report = await work;
  process.stdout.write(`${reencryptSummary(report, vault)}\n`);
  const isWell = report.isDone && report.unreadable.length === 0;
  await shutdown.stop('the work is over', isWell ? 0 : 1);
});
