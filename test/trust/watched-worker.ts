import { subscribe } from 'node:diagnostics_channel';
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { createApp } from '../../src/app.ts';
import { boot, runWorkers } from '../../src/boot.ts';
import type { OwnLogic } from '../../src/sync/own-logic.ts';

const LOOK_EVERY_MS = 10;

/** What it takes to deal with a batch, before its trace is left: so a kill often comes in between. */
const DEALS_MS = 15;

/**
 * A worker whose own logic leaves a trace that outlives kill -9: every id that it was handed, in the file `NOTES`.
 * While the file `HOLD` exists, it stays in the middle of a batch: the page has been read, and is not written yet.
 * `HOLD_HOW=block` keeps the event loop as well, as a computation without an end would; with `CALLS`, when so many calls
 * have asked for their permits, and none has heard of its own.
 */
const { NOTES = '', HOLD = '', HOLD_HOW = '', CALLS = '0' } = process.env;

function block(): void {
  while (existsSync(HOLD)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, LOOK_EVERY_MS);
}

/**
 * Blocks the event loop as soon as Redis was asked for so many permits of calls. Until then no time goes by, or the database
 * would leave the event loop its turns, and the first calls would go out before the last has asked.
 */
function blockWhenAsked(calls: number): void {
  let asked = 0;
  const { now } = performance;
  const since = now.call(performance);
  performance.now = () => since;
  subscribe('tracing:ioredis:command:start', (context) => {
    const { args } = context as { args: string[] };
    if (!args.some((arg) => arg.includes(':calls:')) || ++asked !== calls) return;
    block();
    performance.now = now;
  });
}

const ownLogic: OwnLogic = async ({ resource, created, changed, deleted }, { service }) => {
  await sleep(DEALS_MS);
  const kinds = { created, changed, deleted };
  for (const [kind, documents] of Object.entries(kinds)) {
    const lines = documents.map(({ id }) => `${resource} ${kind} ${id}\n`);
    if (lines.length > 0) appendFileSync(NOTES, lines.join(''));
  }
  if (HOLD === '' || !existsSync(HOLD)) return;
  process.stdout.write(`holds a page of ${resource}\n`);
  if (CALLS !== '0') {
    blockWhenAsked(Number(CALLS));
    await Promise.allSettled(Array.from({ length: Number(CALLS) }, () => service.listTags()));
  } else if (HOLD_HOW === 'block') block();
  else while (existsSync(HOLD)) await sleep(LOOK_EVERY_MS);
  process.stdout.write('lets it go\n');
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
