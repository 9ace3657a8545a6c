import { expect, test } from 'vitest';
import { ServiceClock } from '../../src/service/service-clock.ts';

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0, 400);
const dateAt = (ms: number) => new Date(ms).toUTCString();

test('is our own clock until an answer has told the time', () => {
  const clock = new ServiceClock(() => NOW);
  expect(clock.now()).toBe(NOW);
  for (const none of [undefined, '', 'yesterday']) clock.observe(none);
  expect(clock.now()).toBe(NOW);
});

test.each([-10 * 60_000, 10 * 60_000, 365 * 24 * 3_600_000])(
  'follows a service that is %d ms ahead',
  (ahead) => {
    let local = NOW;
    const clock = new ServiceClock(() => local);
    clock.observe(dateAt(NOW + ahead));
    expect(Math.abs(clock.now() - (NOW + ahead))).toBeLessThan(1_000);
    local += 5_000;
    expect(Math.abs(clock.now() - (NOW + ahead + 5_000))).toBeLessThan(1_000);
  },
);

test('keeps what it has while answers agree with it, to the second', () => {
  const clock = new ServiceClock(() => NOW);
  clock.observe(dateAt(NOW - 400));
  expect(clock.now()).toBe(NOW);
});
