// Every entry point loads this file first.
import './node-version.js';
import module from 'node:module';
import net from 'node:net';
import { fileURLToPath } from 'node:url';

const PARENT_LOOK_MS = 500;
/** Redis and PostgreSQL have five seconds for a connection: enough for two addresses. */
const ADDRESS_TIMEOUT_MS = 2_000;

// A start with the cache takes a third less time. `npm ci` empties it.
module.enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url)));

// Node gives each address of a host but the last 250 ms: too little for a server far away.
net.setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_TIMEOUT_MS);

// With DEBUG, libraries write sessions, codes and the password of Redis past our redaction.
if (process.env.DEBUG) {
  delete process.env.DEBUG;
  process.stderr.write(
    'The app ignores DEBUG, because libraries then log secrets. Use LOG_LEVEL=debug instead.\n',
  );
}

// A report of a crash, if somebody asks Node for it, must not show the keys.
if (process.report) process.report.excludeEnv = true;

// Scripts that rotate logs send this signal. Node would open its debugger, which shows the keys to all users.
process.on('SIGUSR1', () => {});

// npm signals the shell above us, which may end without passing the signal on. So we watch for that shell.
// Where somebody listens for the event, it does not count as a second signal, which would end us at once.
if (process.env.npm_lifecycle_event !== undefined) {
  const parent = process.ppid;
  const look = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(look);
    if (!process.emit('parentGone')) process.kill(process.pid, 'SIGTERM');
  }, PARENT_LOOK_MS);
  look.unref();
}
