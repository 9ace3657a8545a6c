import { writeFileSync } from 'node:fs';
import { createLogger } from '../../src/runtime/logging.ts';
import { installShutdown } from '../../src/runtime/shutdown.ts';

/**
 * A process that stays until it is told to end; with `hang` as its argument longer, as something does not close; with
 * `throw` it throws where nobody catches it, with `throw-odd` and `reject-odd` an error whose message is an object; with `touch` and a path it says
 * on the error output that it runs, and makes that file at its end.
 */
const logger = createLogger({ logLevel: 'info', production: true });
const shutdown = installShutdown({ logger });
shutdown.add('timer', () => logger.info('closed in order'));
const [, , what, path = ''] = process.argv;
if (what === 'touch') {
  shutdown.add('file', () => writeFileSync(path, ''));
  process.stderr.write('it runs\n');
}
if (what === 'hang') shutdown.add('stuck', () => new Promise(() => {}));
setInterval(() => {}, 60_000);
logger.info('ready');
if (what === 'throw') {
  setImmediate(() => {
    throw new Error('nobody catches this');
  });
}
const odd = () => Object.assign(new Error('text'), { message: { error: 'quota' } });
if (what === 'throw-odd') {
  setImmediate(() => {
    throw odd();
  });
}
if (what === 'reject-odd') setImmediate(() => void Promise.reject(odd()));
