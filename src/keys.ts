import { ConfigError, DEFAULT_DATA_DIR, EnvFileError, loadEnvFile, withNewTokenKey } from './config.ts';
import { commandArguments } from './contract/command-arguments.ts';

commandArguments();
try {
  loadEnvFile(process.env);
  const { value, id, olderIds } = withNewTokenKey(process.env, DEFAULT_DATA_DIR, Date.now());
  // The value alone goes to the standard output, so that it can be piped to where secrets are kept.
  process.stdout.write(`TOKEN_KEYS=${value}\n`);
  const next =
    olderIds.length === 0
      ? 'This is a first key. Keep a copy of it away from the database: without it, every company has to install again.'
      : `Give this value to every process and restart them: "${id}" encrypts from then on, and what is encrypted under ${olderIds.map((older) => `"${older}"`).join(', ')} can still be read. Then run: npm run reencrypt`;
  process.stderr.write(`\n${next}\n`);
} catch (error) {
  if (!(error instanceof ConfigError || error instanceof EnvFileError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = 1;
}
