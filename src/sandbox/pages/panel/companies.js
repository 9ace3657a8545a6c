// Companies, and their limits as gauges.
import { reconcile, write } from './dom.js';
import { updateGauges } from './gauges.js';
import { bucket, count, span } from './words.js';

const SCOPES = { plan: 'Own', partner: 'Partner' };

const list = document.querySelector('#company-list');
const hidden = document.querySelector('#companies-hidden');
const template = document.querySelector('#company-card');

/** A card for a company that came after the page was made. */
function makeCard({ id, name, plan }) {
  const card = template.content.firstElementChild.cloneNode(true);
  card.querySelector('h3').textContent = name;
  card.querySelector('.plan').textContent = plan;
  card.querySelector('.id').textContent = id;
  return card;
}

/** A main limit is two gauges: the window, and the burst. */
function gaugesOf(now) {
  return ({ scope, limit, remaining, reset_at, burst_limit, burst_remaining, burst_reset_at }) => [
    {
      key: scope,
      name: `${SCOPES[scope]} limit`,
      left: remaining,
      most: limit,
      note: remaining < limit ? ` · full in ${span(reset_at - now)}` : '',
    },
    {
      key: `${scope} burst`,
      thin: true,
      name: `${SCOPES[scope]} burst`,
      left: burst_remaining,
      most: burst_limit,
      note: burst_reset_at === null ? '' : ` · full in ${span(burst_reset_at - now)}`,
    },
  ];
}

function gaugeOfGuard(now) {
  return ({ scope, guard, tier, bucket: key, limit, remaining, reset_at }) => ({
    key: `${scope} ${guard} ${key}`,
    thin: true,
    name: `Tier ${tier} · ${bucket(key)}${scope === 'partner' ? ' · partner' : ''}`,
    left: remaining,
    most: limit,
    note: ` · ${span(reset_at - now)}`,
  });
}

/** Shows companies, limits and guards. */
export function updateCompanies({ now, companies, guards, company_count }) {
  reconcile(
    list,
    companies,
    ({ id }) => id,
    makeCard,
    (card, { id, contacts, conversations, limits }) => {
      const records = `${count(contacts, 'contact')}, ${count(conversations, 'conversation')}`;
      write(card.querySelector('.records'), records);
      updateGauges(card.querySelector('.limits'), limits.flatMap(gaugesOf(now)));
      const own = guards.filter(({ company_id }) => company_id === id);
      updateGauges(card.querySelector('.guards'), own.map(gaugeOfGuard(now)));
    },
  );
  const more = company_count - companies.length;
  write(hidden, more > 0 ? `${count(more, 'older company', 'older companies')} not shown.` : '');
}
