// The journal, newest request first.
import { make, show, write } from './dom.js';
import { count, timeOfDay } from './words.js';

const MOST_ROWS = 100;

const rows = document.querySelector('#journal-rows');
const none = document.querySelector('#no-requests');
const pause = document.querySelector('#pause');
const waiting = document.querySelector('#journal-waiting');

/** What is here: the number of the newest request, and how many resets there were before it. */
let known = { after: 0, resets: 0 };
let held = [];
let isPaused = false;

/** What the panel has of the journal, to ask for the rest. */
export function knownRequests() {
  return known;
}

function statusClass(status) {
  if (status === 0 || status >= 500) return 'tag bad';
  if (status === 429) return 'tag bad';
  if (status >= 400) return 'tag warn';
  return status >= 300 ? 'tag' : 'tag good';
}

function queryWords(query) {
  const pairs = Object.entries(query).map(([name, value]) => `${name}=${[value].flat().join(', ')}`);
  return `?${pairs.join(' & ')}`;
}

function makeRow({ n, at, method, path, query, status, company_id, remaining, tier, fault }) {
  const request = make('td', { class: 'request' }, make('code', {}, `${method} ${path}`));
  if (fault !== null) request.append(' ', make('span', { class: 'tag bad' }, fault));
  if (tier !== null) request.append(' ', make('span', { class: 'tag' }, `tier ${tier}`));
  if (Object.keys(query).length > 0) {
    const words = queryWords(query);
    request.append(make('code', { class: 'query', title: words }, words));
  }
  const answer = make('span', { class: statusClass(status) }, status === 0 ? 'dropped' : String(status));
  return make(
    'tr',
    { id: `request-${n}` },
    make('td', {}, timeOfDay(at)),
    request,
    make('td', {}, answer),
    make('td', { class: 'wide' }, make('code', {}, company_id ?? '–')),
    make('td', {}, remaining === null ? '–' : String(remaining)),
  );
}

function put(requests) {
  for (const request of requests) rows.prepend(makeRow(request));
  while (rows.children.length > MOST_ROWS) rows.lastElementChild.remove();
  show(none, rows.children.length === 0);
}

/** Takes in what the journal has got since; a journal that began anew is shown anew. */
export function updateJournal({ requests, last_request: after, resets }) {
  if (resets !== known.resets) {
    rows.replaceChildren();
    held = [];
  }
  known = { after, resets };
  if (isPaused) held = [...held, ...requests].slice(-MOST_ROWS);
  else put(requests);
  show(none, rows.children.length === 0);
  write(waiting, isPaused ? `Paused; ${count(held.length, 'newer request')}.` : '');
}

pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.setAttribute('aria-pressed', String(isPaused));
  if (!isPaused) put(held.splice(0));
  write(waiting, isPaused ? 'Paused.' : '');
});
