import { createLogger } from '../../src/runtime/logging.ts';
import { installShutdown } from '../../src/runtime/shutdown.ts';

/** A process that stays until it is told to end, or, with `throw` as its argument, throws where nobody catches it. */
const logger = createLogger({ logLevel: 'info', production: true });
const shutdown = installShutdown({ logger });
shutdown.add('timer', () => logger.info('closed in order'));
setInterval(() => {}, 60_000);
logger.info('ready');
if (process.argv[2] === 'throw') {
  setImmediate(() => {
    throw new Error('nobody catches this');
  });
}
