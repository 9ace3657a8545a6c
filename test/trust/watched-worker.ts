import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApp } from '../../src/app.ts';
import { boot } from '../../src/boot.ts';
import type { OwnLogic } from '../../src/sync/own-logic.ts';

const LOOK_EVERY_MS = 10;

/** What it takes to deal with a batch, before its trace is left: so a kill often comes in between. */
const DEALS_MS = 15;

/**
 * A worker whose own logic leaves a trace that outlives kill -9: every id that it was handed, in the file `NOTES`.
 * While the file `HOLD` exists, it stays in the middle of a batch: the page has been read, and is not written yet.
 * `HOLD_HOW=block` keeps the event loop as well, as a computation without an end would.
 */
const { NOTES = '', HOLD = '', HOLD_HOW = '' } = process.env;

const ownLogic: OwnLogic = async ({ resource, created, changed, deleted }) => {
  await sleep(DEALS_MS);
  const kinds = { created, changed, deleted };
  for (const [kind, documents] of Object.entries(kinds)) {
    const lines = documents.map(({ id }) => `${resource} ${kind} ${id}\n`);
    if (lines.length > 0) appendFileSync(NOTES, lines.join(''));
  }
  if (HOLD === '' || !existsSync(HOLD)) return;
  process.stdout.write(`holds a page of ${resource}\n`);
  while (existsSync(HOLD)) {
    if (HOLD_HOW === 'block') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_EVERY_MS);
    else await sleep(LOOK_EVERY_MS);
  }
  process.stdout.write('lets it go\n');
};

await boot(async ({ config, logger, shutdown }) => {
  const app = await createApp(config, config.redisUrl ?? '', logger, { ownLogic });
  shutdown.add('app', () => app.close());
  const workers = app.startWorkers();
  shutdown.add('workers', () => workers.close());
  logger.info('the workers run');
});
