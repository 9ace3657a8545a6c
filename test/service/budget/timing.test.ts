import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { LuaWasmEngine } from 'lua-redis-wasm';
import { expect, test } from 'vitest';

const engine = await LuaWasmEngine.createStandalone({});
const SCRIPT = ['timing', 'pacing']
  .map((name) => readFileSync(`src/service/budget/${name}.lua`, 'utf8').replace(/^\s*--.*$/gm, ''))
  .join('\n');

/** What one of the pure functions says: its first result, as text where it is no number. */
function lua(expression: string): number | string {
  const reply = engine.eval(`${SCRIPT}\nreturn string.format('%s', tostring((${expression})))`);
  if (!Buffer.isBuffer(reply)) throw new Error(`${expression} failed`);
  const text = reply.toString();
  return Number.isNaN(Number(text)) ? text : Number(text);
}

/** All numbers here are whole ones. */
function holds(what: string, ranges: fc.Arbitrary<number>[], check: (...values: number[]) => void): void {
  test(what, async () => {
    await fc.assert(
      fc.asyncProperty(fc.tuple(...ranges), async (values) => check(...values)),
      { seed: 4, numRuns: 150, interruptAfterTimeLimit: 1_000 },
    );
  });
}

const ms = fc.integer({ min: 0, max: 100_000 });
const some = fc.integer({ min: 0, max: 150 });

holds('the company’s clock never runs backwards', [ms, ms, ms], (redisNow = 0, ahead = 0, seen = 0) => {
  const now = Number(lua(`timing.clock(${redisNow}, ${ahead}, ${seen})`));
  expect(now).toBe(Math.max(redisNow + ahead, seen));
});

holds(
  'no answer makes more permits of the same limit',
  [some, some, some, ms, ms],
  (limit = 0, left = 0, used = 0, at = 0, sent = 0) => {
    const merged = engine.eval(
      `${SCRIPT}\nreturn { timing.merge(${limit}, ${left}, ${at}, ${limit}, ${used}, ${sent}) }`,
    );
    expect(merged).toEqual([limit, Math.min(left, limit - used)]);
  },
);

holds(
  'an end is taken over unless a known one is earlier, and that may be earlier by what is hidden only',
  [ms, ms, fc.integer({ min: 0, max: 59_999 }), ms],
  (known = 0, sent = 0, endsIn = 0, took = 0) => {
    const end = Number(lua(`timing.end_of(${known}, ${sent}, ${endsIn}, ${sent + took}, 60000)`));
    expect(end).toBeLessThanOrEqual(sent + took + endsIn);
    expect(end).toBeGreaterThanOrEqual(sent + endsIn - 2_000);
  },
);

holds(
  'nothing is held back for nobody, and never more than a tenth',
  [some, ms, ms],
  (others = 0, watched = 0, unseen = 0) => {
    const held = Number(lua(`timing.held_back(${others}, ${watched}, ${unseen}, 120)`));
    expect(held).toBeGreaterThanOrEqual(others > 0 ? 1 : 0);
    expect(held).toBeLessThanOrEqual(others > 0 ? 12 : 0);
  },
);

holds(
  'the slowest pace uses the permits within what is left of the window, and is not slower than the limit',
  [fc.integer({ min: 1, max: 60_000 }), ms, fc.integer({ min: 1, max: 120 }), fc.integer({ min: 1, max: 3 })],
  (left = 0, more = 0, permits = 0, routes = 0) => {
    const gap = Number(lua(`pacing.slowest_gap(${left}, ${left + more}, ${permits}, 500, ${routes}, 0)`));
    expect(gap).toBeGreaterThan(0);
    expect(gap).toBeLessThanOrEqual(Math.min((left * 0.9) / permits, 500) * routes + 0.001);
  },
);

holds(
  'in the window in which a guard refused nothing is caught up on faster than 14 times the limit',
  [fc.integer({ min: 1, max: 120 }), ms, ms],
  (passed = 0, stretch = 0, retryAfter = 0) => {
    const catchUp = Number(lua(`pacing.catch_up_gap(${passed}, ${stretch}, ${retryAfter + 50}, 500)`));
    expect(catchUp).toBeLessThanOrEqual(Math.min((stretch + retryAfter + 50) / passed, 500 / 14) + 0.001);
    expect(catchUp).toBeGreaterThanOrEqual(Math.min(stretch / passed, 500 / 14) - 0.001);
    const gap = Number(lua(`pacing.slowest_gap(10, 60000, 120, 500, 1, ${catchUp})`));
    expect(gap).toBeCloseTo(Math.max(catchUp, 5 / 120), 6);
  },
);

holds(
  'a block is at least as long as the service asks',
  [ms, fc.integer({ min: 1, max: 99 })],
  (asked = 0, refused = 0) => {
    const block = Number(lua(`timing.block(${asked}, ${refused})`));
    expect(block).toBe(Math.max(asked, Math.min(50 * 2 ** (refused - 1), 30_000)));
  },
);
