import { appendFileSync } from 'node:fs';
import { createApp } from '../../src/app.ts';
import { boot } from '../../src/boot.ts';
import type { OwnLogic } from '../../src/sync/own-logic.ts';

/**
 * A worker whose own logic is odd with the contacts of the company `COMPANY`, as `DOES` says, and takes all else. It
 * leaves a line of each such batch in the file `NOTES`: the ids that it is told.
 */
const { NOTES = '', COMPANY = '', DOES = '' } = process.env;

const WAYS: Record<string, OwnLogic> = {
  // Begun together, awaited one after the other.
  floats: async (_batch, { service }) => {
    const calls = ['tag_a', 'tag_b', 'tag_c'].map((tag_id) => service.listChildTags({ tag_id }));
    for (const call of calls) await call;
  },
};

const ownLogic: OwnLogic = async (batch, context) => {
  const { companyId, resource, created, changed, deleted } = batch;
  if (companyId !== COMPANY || resource !== 'contacts') return;
  appendFileSync(NOTES, `${[...created, ...changed, ...deleted].map(({ id }) => id).join(' ')}\n`);
  await WAYS[DOES]?.(batch, context);
};

await boot(async ({ config, logger, shutdown }) => {
  const app = await createApp(config, config.redisUrl ?? '', logger, { ownLogic });
  shutdown.add('app', () => app.close());
  const workers = app.startWorkers();
  shutdown.add('workers', () => workers.close(shutdown));
  logger.info('the workers run');
});
