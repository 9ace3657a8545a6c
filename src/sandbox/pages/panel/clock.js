// The clock: it ticks, is frozen, set and moved on.
import { show, write } from './dom.js';
import { act, control } from './service.js';
import { moment, timeOfDay } from './words.js';

const HOUR_MS = 60 * 60_000;
const BEFORE_END_MS = 12 * HOUR_MS;
const TICK_MS = 250;

const shown = document.querySelector('#now');
const state = document.querySelector('#clock-state');
const freeze = document.querySelector('#freeze');
const toRotation = document.querySelector('#to-rotation');
const noToken = document.querySelector('#no-token');
const lastHours = document.querySelector('#last-hours');
const advanceForm = document.querySelector('#advance');
const setForm = document.querySelector('#set-clock');

let known = { now: Number(shown.dataset.now), frozen: shown.dataset.frozen === 'true', at: Date.now() };
let refreshEndsAt = null;

/** The service's now, in ms since 1970, between two looks at it. */
export function serviceNow() {
  return known.frozen ? known.now : known.now + Date.now() - known.at;
}

function tick() {
  const now = serviceNow();
  shown.dateTime = new Date(now).toISOString();
  write(shown, moment(now));
}

function move(body) {
  return act(
    () => control('POST', 'clock', body),
    ({ now, frozen }) => `It is ${timeOfDay(now)}, and the clock ${frozen ? 'is frozen' : 'runs'}.`,
  );
}

/** Shows where the clock stands. */
export function updateClock({ now, frozen, refresh_ends_at: endsAt }) {
  known = { now, frozen, at: Date.now() };
  refreshEndsAt = endsAt;
  write(state, frozen ? 'frozen' : 'running');
  state.classList.toggle('strong', frozen);
  write(freeze, frozen ? 'Let it run' : 'Freeze');
  const isNear = endsAt !== null && endsAt - BEFORE_END_MS <= now;
  show(noToken, endsAt === null);
  show(lastHours, isNear);
  toRotation.disabled = endsAt === null || isNear;
  tick();
}

for (const button of document.querySelectorAll('[data-advance]')) {
  button.addEventListener('click', () => move({ advance_ms: Number(button.dataset.advance) }));
}
freeze.addEventListener('click', () => move({ frozen: !known.frozen }));
toRotation.addEventListener('click', () => move({ set: refreshEndsAt - BEFORE_END_MS }));
advanceForm.addEventListener('submit', (event) => {
  event.preventDefault();
  const { amount, unit } = advanceForm.elements;
  void move({ advance_ms: Math.round(Number(amount.value) * Number(unit.value)) });
});
setForm.addEventListener('submit', (event) => {
  event.preventDefault();
  void move({
    set: `${setForm.elements.moment.value}${setForm.elements.moment.value.length === 16 ? ':00' : ''}Z`,
  });
});
document.querySelector('#reset').addEventListener('click', () => {
  if (!window.confirm('Forget all tokens, added companies and requests? Snapshots stay.')) return;
  void act(
    () => control('POST', 'reset', {}),
    () => 'Everything is as it was at the start.',
  );
});
setInterval(tick, TICK_MS);
