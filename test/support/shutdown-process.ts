import { writeFileSync } from 'node:fs';
import { createLogger } from '../../src/runtime/logging.ts';
import { installShutdown } from '../../src/runtime/shutdown.ts';

/** A process that stays until it is told to end; its first argument says what goes wrong then, or before. */
const [, , what, path = ''] = process.argv;
const logger = createLogger({ logLevel: 'info', production: true });
const shutdown = installShutdown({ logger });
shutdown.add('first', () => logger.info('first closed'));
shutdown.add(
  'second',
  () => logger.info('second closed'),
  () => logger.info('second begins'),
);
setInterval(() => {}, 60_000);
const happenings: Record<string, () => void> = {
  hang: () => {
    const tellLater = () => setTimeout(() => logger.info('still closing'), 600);
    shutdown.add('stuck', () => new Promise(tellLater));
  },
  throw: () => {
    throw new Error('nobody catches this');
  },
  reject: () => void Promise.reject(new Error('nobody catches this')),
  'close-badly': () => {
    shutdown.add('bad', () => {
      throw new Error('stuck');
    });
    void shutdown.stop('over');
  },
  /** Says on the error output that it runs, and makes a file at its end. */
  touch: () => {
    shutdown.add('file', () => writeFileSync(path, ''));
    process.stderr.write('it runs\n');
  },
};
setImmediate(() => {
  logger.info('ready');
  happenings[what ?? '']?.();
});
