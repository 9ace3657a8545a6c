// Loaded before every entry point, in plain JavaScript: an older Node cannot read the TypeScript behind it.
import module from 'node:module';
import net from 'node:net';
import { fileURLToPath } from 'node:url';

const NEEDED_MAJOR = 24;
const PARENT_LOOK_MS = 500;
/** Two addresses fit into the five seconds that Redis and PostgreSQL have for a connection. */
const ADDRESS_TIMEOUT_MS = 2_000;

const major = Number(process.versions.node.split('.')[0]);
if (major < NEEDED_MAJOR) {
  process.stderr.write(
    `Node ${NEEDED_MAJOR} or newer is needed, this is ${process.versions.node}: start with "npm start" after "npm ci" (which brings Node ${NEEDED_MAJOR} along), or install Node ${NEEDED_MAJOR}.\n`,
  );
  process.exit(1);
}

// What was compiled is kept for the next start, which takes a third less time then. Where the place cannot be written,
// nothing is kept. `npm ci` clears it away.
module.enableCompileCache(fileURLToPath(new URL('../../node_modules/.cache/compiled', import.meta.url)));

// Of a host with several addresses, Node gives each but the last 250 ms: too little for a server far away. All clients here
// heed this: undici, ioredis, pg.
net.setDefaultAutoSelectFamilyAttemptTimeout(ADDRESS_TIMEOUT_MS);

// Libraries that hear it write sessions, codes and the password of Redis to the log, past everything that hides them there.
if (process.env.DEBUG) {
  delete process.env.DEBUG;
  process.stderr.write('DEBUG is not heeded, as libraries log secrets then. LOG_LEVEL=debug says more.\n');
}

// Node would open its debugger, by which any user of the machine reads the keys: scripts that rotate logs send this signal.
process.on('SIGUSR1', () => {});

// npm hands a signal to the shell between it and us, which may end without handing it on: we would run on, unseen,
// and keep the ports. So when that shell is gone, we are told to end: as a signal only where nobody listens for the
// event, as the signal may have come to us, too, and a second one ends us at once.
if (process.env.npm_lifecycle_event !== undefined) {
  const parent = process.ppid;
  const look = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(look);
    if (!process.emit('parentGone')) process.kill(process.pid, 'SIGTERM');
  }, PARENT_LOOK_MS);
  look.unref();
}
