import { readEnvironment } from './config.ts';
import { ConfigError } from './variables.ts';

// Imported before the sandbox, whose package reads no file: Node's own `--env-file` does not hear a byte order mark.
try {
  readEnvironment();
} catch (error) {
  if (!(error instanceof ConfigError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exit(1);
}
