import { createLogger } from '../../src/runtime/logging.ts';
import { installShutdown } from '../../src/runtime/shutdown.ts';

/**
 * A process that stays until it is told to end; with `hang` as its argument longer, as something does not close; with
 * `throw` it throws where nobody catches it.
 */
const logger = createLogger({ logLevel: 'info', production: true });
const shutdown = installShutdown({ logger });
shutdown.add('timer', () => logger.info('closed in order'));
if (process.argv[2] === 'hang') shutdown.add('stuck', () => new Promise(() => {}));
setInterval(() => {}, 60_000);
logger.info('ready');
if (process.argv[2] === 'throw') {
  setImmediate(() => {
    throw new Error('nobody catches this');
  });
}
