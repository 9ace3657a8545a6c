import { expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';

const AT = Date.UTC(2026, 2, 1, 12, 0, 0);

const DAY_MS = 24 * 3_600_000;
const told = (moment: number) => new Date(moment).toUTCString();

/** A clock of ours that the test moves. */
function clockAt(start: number) {
  const own = { now: start };
  return { own, clock: new ServiceClock(() => own.now) };
}

test('until an answer has told, the service’s time is ours', () => {
  const { own, clock } = clockAt(AT);
  expect(clock.now()).toBe(AT);
  expect(clock.age()).toBe(Number.POSITIVE_INFINITY);
  own.now += 5;
  expect(clock.now()).toBe(AT + 5);
});

test.each([
  ['hours behind', AT - 3 * 3_600_000, 2],
  ['minutes ahead', AT + 5 * 60_000, 2],
  ['a minute behind', AT - 60_000, 1],
  ['two seconds behind', AT - 2_000, 1],
])('a clock that is %s follows the service to half a second', (_what, start, answers) => {
  const { own, clock } = clockAt(start);
  for (let answer = 1; answer <= answers; answer++) {
    expect(clock.observe(new Date(AT).toUTCString())).toBe(answer < answers);
  }
  expect(Math.abs(clock.now() - (AT + 500))).toBeLessThanOrEqual(500);
  own.now += 10_000;
  expect(Math.abs(clock.now() - (AT + 10_500))).toBeLessThanOrEqual(500);
  expect(clock.age()).toBe(10_000);
});

test.each([0, 1, 999])('a difference that whole seconds explain (%d ms) changes nothing', (ahead) => {
  const { clock } = clockAt(AT + ahead);
  clock.observe(new Date(AT).toUTCString());
  expect(clock.now()).toBe(AT + ahead);
  expect(clock.age()).toBe(0);
});

test('a clock that is right stays where it is over many answers', () => {
  const { own, clock } = clockAt(AT - 60_000);
  clock.observe(new Date(AT).toUTCString());
  const offset = clock.now() - own.now;
  for (let second = 1; second <= 20; second++) {
    own.now += 1_000;
    clock.observe(new Date(AT + second * 1_000).toUTCString());
  }
  expect(clock.now() - own.now).toBe(offset);
});

test.each([[undefined], [null], [''], ['yesterday'], ['Xyz, 99 Foo 2026 99:99:99 GMT'], ['+020000-01-01']])(
  'a Date of %j teaches nothing',
  (date) => {
    const { clock } = clockAt(AT);
    clock.observe(date);
    expect(clock.now()).toBe(AT);
    expect(clock.age()).toBe(Number.POSITIVE_INFINITY);
  },
);

/** Our clock, which the test sets, and a clock that nobody sets. */
function settableClock() {
  const own = { wall: AT, steady: 50 };
  const clock = new ServiceClock(
    () => own.wall,
    () => own.steady,
  );
  const pass = (ms: number) => {
    own.wall += ms;
    own.steady += ms;
  };
  clock.observe(new Date(AT).toUTCString());
  return { own, clock, pass };
}

test.each([10, 60 * 24 * 365])(
  'our clock set back by %d minutes takes nothing from the service’s time',
  (minutes) => {
    const { own, clock, pass } = settableClock();
    pass(5_000);
    own.wall -= minutes * 60_000;
    pass(5_000);
    expect(Math.abs(clock.now() - (AT + 10_000))).toBeLessThanOrEqual(1_000);
    expect(clock.age()).toBe(Number.POSITIVE_INFINITY);
    clock.observe(new Date(AT + 10_000).toUTCString());
    expect(Math.abs(clock.now() - (AT + 10_500))).toBeLessThanOrEqual(500);
    pass(3_000);
    expect(clock.age()).toBe(3_000);
    expect(Math.abs(clock.now() - (AT + 13_500))).toBeLessThanOrEqual(500);
  },
);

test('our clock set forward, or a machine that slept: the service is to be asked for the time', () => {
  const { own, clock, pass } = settableClock();
  own.wall += 600_000;
  expect(clock.now()).toBeGreaterThanOrEqual(AT + 600_000);
  expect(clock.age()).toBe(Number.POSITIVE_INFINITY);
  clock.observe(new Date(AT).toUTCString());
  expect(Math.abs(clock.now() - (AT + 500))).toBeLessThanOrEqual(500);
  pass(7_000);
  expect(clock.age()).toBe(7_000);
});

test.each([
  ['the machine slept', 600_000],
  ['our clock was set forward', 0],
  ['both', 200_000],
])('after our clock has gone more than time did, an answer is believed at once: %s', (_what, slept) => {
  const { own, clock } = settableClock();
  own.wall += 600_000;
  expect(clock.observe(told(AT + 600_000 + 2 * 3_600_000))).toBe(true);
  expect(clock.observe(told(AT + slept))).toBe(false);
  expect(Math.abs(clock.now() - (AT + slept + 500))).toBeLessThanOrEqual(500);
});

test('clocks that do not run quite alike are no step', () => {
  const { own, clock } = settableClock();
  own.wall += 20_000;
  own.steady += 20_900;
  expect(clock.age()).toBe(20_000);
});

test.each([400 * DAY_MS, -400 * DAY_MS, 20 * 3_600_000, -2 * 3_600_000, 120_000, Date.UTC(9999, 0) - AT])(
  'a time that one answer alone tells, %d ms away, is not believed; the next answers go on as before',
  (away) => {
    const { own, clock } = clockAt(AT);
    expect(clock.observe(told(AT))).toBe(false);
    own.now += 1_000;
    expect(clock.observe(told(own.now + away))).toBe(true);
    expect(clock.now()).toBe(own.now);
    expect(clock.age()).toBe(1_000);
    expect(clock.observe(told(own.now))).toBe(false);
    expect(clock.observe(told(own.now + away))).toBe(true);
    expect(clock.now()).toBe(own.now);
  },
);

test('a time that two answers in a row tell is believed, however far away', () => {
  const { own, clock } = clockAt(AT);
  expect(clock.observe(told(AT + 400 * DAY_MS))).toBe(true);
  own.now += 5_000;
  expect(clock.observe(told(AT + 900 * DAY_MS))).toBe(true);
  own.now += 5_000;
  expect(clock.observe(told(AT + 900 * DAY_MS + 5_000))).toBe(false);
  expect(Math.abs(clock.now() - (AT + 900 * DAY_MS + 5_500))).toBeLessThanOrEqual(500);
  expect(clock.age()).toBe(0);
});
