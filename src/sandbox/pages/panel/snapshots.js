// Snapshots: taken, and come back to.
import { make, reconcile, show } from './dom.js';
import { act, control } from './service.js';
import { moment } from './words.js';

const list = document.querySelector('#snapshot-list');
const none = document.querySelector('#no-snapshots');

function makeSnapshot({ id, at }) {
  const button = make(
    'button',
    { type: 'button', class: 'little', 'aria-label': `Restore ${id}` },
    'Restore',
  );
  button.addEventListener('click', () =>
    act(
      () => control('POST', 'restore', { id }),
      () => `Everything is as it was in ${id}.`,
    ),
  );
  const text = make('span', {}, make('code', {}, id), ` of ${moment(at)}`);
  return make('li', { class: 'row' }, make('div', { class: 'head' }, text, button));
}

/** Shows the snapshots that are kept, newest first. */
export function updateSnapshots({ snapshots }) {
  show(none, snapshots.length === 0);
  reconcile(
    list,
    snapshots.toReversed(),
    ({ id }) => id,
    makeSnapshot,
    () => {},
  );
}

document.querySelector('#take-snapshot').addEventListener(
  'click',
  () =>
    void act(
      () => control('POST', 'snapshot', {}),
      ({ id }) => `${id} is taken.`,
    ),
);
