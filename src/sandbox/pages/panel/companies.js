// Companies, and their limits as gauges.
import { make, makeBar, reconcile, setBar, write } from './dom.js';
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
  return ({ guard, tier, bucket: key, limit, remaining, reset_at }) => ({
    key: `${guard} ${key}`,
    thin: true,
    name: `Tier ${tier} · ${bucket(key)}`,
    left: remaining,
    most: limit,
    note: ` · ${span(reset_at - now)}`,
  });
}

function updateGauges(parent, gauges) {
  reconcile(
    parent,
    gauges,
    ({ key }) => key,
    ({ name, thin }) => makeGauge(name, thin),
    (gauge, { name, left, most, note }) => setGauge(gauge, name, left, most, note),
  );
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
