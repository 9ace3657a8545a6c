import { reencryptSummary, reencryptTokens } from './auth/reencrypt.ts';
import { TokenCipher } from './auth/token-cipher.ts';
import { boot } from './boot.ts';
import { openExistingDatabase } from './store/open-database.ts';
import { keepSetting } from './store/settings.ts';
import { TokenStore } from './store/tokens.ts';

await boot(async ({ config, shutdown }) => {
  const cipher = new TokenCipher(config.tokenKeys);
  const db = await openExistingDatabase(config.databaseUrl);
  shutdown.add('database', () => db.destroy());
  const stopping = new AbortController();
  const store = new TokenStore(db);
  await cipher.proveKeys((name, value) => keepSetting(db, name, value));
  process.stdout.write(`Encrypting all tokens of ${config.databaseUrl} under the key "${cipher.keyId}".\n`);
  const work = reencryptTokens(
    { store, cipher },
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
  process.stdout.write(`${reencryptSummary(report, cipher)}\n`);
  const isWell = report.isDone && report.unreadable.length === 0;
  await shutdown.stop('the work is over', isWell ? 0 : 1);
});
