import { appendFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApp } from '../../src/app.ts';
import { boot, runWorkers } from '../../src/boot.ts';
import type { OwnLogic } from '../../src/sync/own-logic.ts';

/**
 * A worker whose own logic is odd with the contacts of the company `COMPANY`, as `DOES` says, and takes all else. It
 * leaves a line of each such batch in the file `NOTES`: the ids that it is told; and says that it is at work.
 */
const { NOTES = '', COMPANY = '', DOES = '' } = process.env;

/** Longer than the lock of a job lasts, and than it takes the others to see that it has run out. */
const BLOCKS_MS = 12_000;

/** Longer than any test. */
const LONG_MS = 600_000;

const WAYS: Record<string, OwnLogic> = {
  // Begun together, awaited one after the other.
  floats: async (_batch, { service }) => {
    const calls = ['tag_a', 'tag_b', 'tag_c'].map((tag_id) => service.listChildTags({ tag_id }));
    for (const call of calls) await call;
  },
  // As a computation that never awaits.
  blocks: async () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BLOCKS_MS),
  // Where nobody catches it.
  crashes: async (_batch, { signal }) => {
    setImmediate(() => {
      throw new Error('outside its batch');
    });
    await sleep(LONG_MS, undefined, { signal });
  },
  heeds: async (_batch, { signal }) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve));
    await sleep(100);
  },
  sleeps: () => sleep(LONG_MS),
};

const ownLogic: OwnLogic = async (batch, context) => {
  const { companyId, resource, created, changed, deleted } = batch;
  if (companyId !== COMPANY || resource !== 'contacts') return;
  appendFileSync(NOTES, `${[...created, ...changed, ...deleted].map(({ id }) => id).join(' ')}\n`);
  process.stdout.write('at work\n');
  await WAYS[DOES]?.(batch, context);
};

await boot(async ({ config, logger, shutdown }) => {
  const app = await createApp(config, config.redisUrl ?? '', logger, { ownLogic });
  shutdown.add(
    'app',
    () => app.close(),
    () => app.end(),
  );
  runWorkers(app, shutdown);
  logger.info('the workers run');
});
