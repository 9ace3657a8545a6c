// Faults: what is ordered, and how often it was used.
import { make, reconcile, show, write } from './dom.js';
import { act, control } from './service.js';
import { count, faultWords } from './words.js';

const list = document.querySelector('#fault-list');
const none = document.querySelector('#no-faults');
const removeAll = document.querySelector('#remove-faults');

function makeFault({ id }) {
  const button = make('button', { type: 'button', class: 'little', 'aria-label': `Remove ${id}` }, 'Remove');
  button.addEventListener('click', async () => {
    await act(
      () => control('DELETE', `faults/${id}`),
      () => `${id} is removed.`,
    );
    list.focus();
  });
  const text = make(
    'div',
    {},
    make('code', {}, id),
    ' ',
    make('strong'),
    make('br'),
    make('span', { class: 'small' }),
  );
  return make('li', { class: 'row' }, make('div', { class: 'head' }, text, button));
}

function whom({ method, path, company_id, client_id }, names) {
  const parts = [
    [method, path ?? (method && 'any route')].filter(Boolean).join(' ') || 'any route',
    company_id && (names.get(company_id) ?? company_id),
    client_id && (names.get(client_id) ?? client_id),
  ];
  return parts.filter(Boolean).join(' · ');
}

function turn({ times, used, left, to_pass }) {
  if (left === 0) return `used up: ${count(times, 'request')}`;
  const first = to_pass > 0 ? `after ${count(to_pass, 'more request')}, ` : '';
  return `${first}used ${used} of ${times}`;
}

/** Shows the faults, newest first. */
export function updateFaults({ faults, companies, applications }) {
  const names = new Map([
    ...companies.map(({ id, name }) => [id, name]),
    ...applications.map(({ client_id, name }) => [client_id, name]),
  ]);
  show(none, faults.length === 0);
  show(removeAll, faults.length > 0);
  reconcile(
    list,
    faults.toReversed(),
    ({ id }) => id,
    makeFault,
    (row, fault) => {
      write(row.querySelector('strong'), faultWords(fault.fault));
      write(row.querySelector('.small'), `${whom(fault.match, names)} · ${turn(fault)}`);
      row.classList.toggle('used-up', fault.left === 0);
    },
  );
}

removeAll.addEventListener(
  'click',
  () =>
    void act(
      () => control('DELETE', 'faults'),
      () => 'No more faults.',
    ),
);
