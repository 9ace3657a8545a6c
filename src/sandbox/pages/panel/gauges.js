// Gauges: a name, how much of how much is left, and a bar that says the same.
import { make, makeBar, reconcile, setBar, write } from './dom.js';

function makeGauge(name, thin) {
  const gauge = make('div', { class: 'gauge' });
  gauge.append(make('div', { class: 'words' }, make('span'), make('span')), makeBar(name, thin));
  return gauge;
}

function setGauge(gauge, name, left, most, note) {
  const [title, value] = gauge.querySelector('.words').children;
  const words = `${left} of ${most}${note}`;
  write(title, name);
  write(value, words);
  setBar(gauge.querySelector('.bar'), left, most, words);
}

/** Brings the gauges in an element in line: `{key, name, left, most, note, thin}` each. */
export function updateGauges(parent, gauges) {
  reconcile(
    parent,
    gauges,
    ({ key }) => key,
    ({ name, thin }) => makeGauge(name, thin),
    (gauge, { name, left, most, note }) => setGauge(gauge, name, left, most, note),
  );
}
