// The form that orders faults.
import { make, reconcile, write } from './dom.js';
import { act, control } from './service.js';

const form = document.querySelector('#order-fault');
const kind = form.elements.kind;

const number = (name) => Number(form.elements[name].value);
const text = (name) => form.elements[name].value;

/** The fault of each kind, as the fields have it. */
const FAULTS = {
  status: () => {
    const retryAfter = text('retry_after');
    return {
      status: number('status'),
      ...(retryAfter === '' ? {} : { headers: { 'retry-after': retryAfter } }),
    };
  },
  before: () => ({ drop: 'before' }),
  after: () => ({ drop: 'after' }),
  delay: () => ({ delay_ms: number('delay_ms') }),
  drip: () => ({ drip: { bytes: number('drip_bytes'), every_ms: number('drip_every_ms') } }),
  truncate: () => ({
    truncate: number('truncate'),
    ...(form.elements.truncate_drop.checked ? { drop: 'after' } : {}),
  }),
  body: () => ({ body: text('body') }),
  headers: () => ({
    headers: { [text('header_name')]: text('header_value') === '' ? null : text('header_value') },
  }),
  revoke: () => ({ revoke: text('revoke') }),
  records: () => ({
    records: {
      resource: text('resource'),
      create: number('create'),
      delete: number('delete'),
      change: number('change'),
      reorder: form.elements.reorder.checked,
    },
  }),
};

/** Whom it is for: what is left open in the form is left out. */
function matchOf() {
  const [method, path] = text('route').split(' ');
  const match = {};
  if (method) Object.assign(match, { method, path });
  if (text('company_id') !== '') match.company_id = text('company_id');
  if (text('client_id') !== '') match.client_id = text('client_id');
  if (number('nth') > 1) match.nth = number('nth');
  return match;
}

function showFields() {
  for (const fields of form.querySelectorAll('[data-kind]')) {
    fields.hidden = fields.dataset.kind !== kind.value;
    // What is hidden is neither checked nor reached with the keyboard.
    fields.disabled = fields.hidden;
  }
}

/** Keeps a choice of names in line with what there is; the first option stays. */
function updateOptions(select, items) {
  reconcile(
    select,
    [{ value: '', name: select.firstElementChild.textContent }, ...items],
    ({ value }) => value,
    ({ value }) => make('option', { value }),
    (option, { name }) => write(option, name),
  );
}

/** Offers the companies and applications that there are. */
export function updateFaultForm({ companies, applications }) {
  updateOptions(
    form.elements.company_id,
    companies.map(({ id, name }) => ({ value: id, name })),
  );
  updateOptions(
    form.elements.client_id,
    applications.map(({ client_id, name }) => ({ value: client_id, name })),
  );
}

kind.addEventListener('change', showFields);
showFields();
form.addEventListener('submit', (event) => {
  event.preventDefault();
  const order = { match: matchOf(), fault: FAULTS[kind.value](), times: number('times') };
  void act(
    () => control('POST', 'faults', order),
    ({ id }) => `${id} is ordered.`,
  );
});
