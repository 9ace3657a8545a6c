// Applications, and how often their servers may still be called.
import { make, reconcile, write } from './dom.js';
import { updateGauges } from './gauges.js';
import { span } from './words.js';

const list = document.querySelector('#application-list');

function makeApplication({ client_id }) {
  const words = make('div', {}, make('strong'), ' ', make('span', { class: 'tag' }), ' ');
  words.append(make('code', {}, client_id));
  return make('li', {}, words, make('div', { class: 'calls' }));
}

/** Shows the applications that are registered, and the open limits on calls to their servers. */
export function updateApplications({ now, applications, call_limits }) {
  reconcile(
    list,
    applications,
    ({ client_id }) => client_id,
    makeApplication,
    (row, { client_id, name, kind }) => {
      write(row.querySelector('strong'), name);
      write(row.querySelector('.tag'), kind);
      const own = call_limits.filter(({ application }) => application === client_id);
      const gauges = own.map(({ limit, remaining, reset_at }) => ({
        key: client_id,
        name: 'Calls to its server',
        left: remaining,
        most: limit,
        note: ` · full in ${span(reset_at - now)}`,
      }));
      updateGauges(row.querySelector('.calls'), gauges);
    },
  );
}
