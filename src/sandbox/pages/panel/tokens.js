// Tokens and how much of their lives is left.
import { make, makeBar, reconcile, setBar, show, write } from './dom.js';
import { moment, span } from './words.js';

const ROTATION_MS = 24 * 60 * 60_000;

const list = document.querySelector('#token-list');
const none = document.querySelector('#no-tokens');

function makeToken({ id, kind, issued_at }) {
  const who = make('span', { class: 'who' });
  const title = make('div', { class: 'head' }, who, make('span', { class: 'tag' }));
  const words = make(
    'div',
    { class: 'words' },
    make('span', {}, `Issued ${moment(issued_at)}`),
    make('span'),
  );
  return make(
    'li',
    { class: 'row gauge', id: `token-${id}` },
    title,
    words,
    makeBar(`Life of the ${kind} token`, true),
  );
}

function kindOf({ kind, expires_at }, now) {
  if (kind === 'access') return 'access';
  return expires_at - now <= ROTATION_MS ? 'refresh: the next one rotates it' : 'refresh';
}

/** Shows the newest tokens that are valid. */
export function updateTokens({ now, tokens, companies, applications }) {
  const companyNames = new Map(companies.map(({ id, name }) => [id, name]));
  const applicationNames = new Map(applications.map(({ client_id, name }) => [client_id, name]));
  show(none, tokens.length === 0);
  reconcile(
    list,
    tokens,
    ({ id }) => id,
    makeToken,
    (row, token) => {
      const { application, company_id, issued_at, expires_at } = token;
      const left = Math.max(0, expires_at - now);
      const company = companyNames.get(company_id) ?? company_id;
      write(row.querySelector('.who'), `${applicationNames.get(application) ?? application} for ${company}`);
      const tag = row.querySelector('.tag');
      write(tag, kindOf(token, now));
      tag.classList.toggle('strong', token.kind === 'refresh');
      write(row.querySelector('.words').lastElementChild, `ends in ${span(left)}`);
      setBar(row.querySelector('.bar'), left, expires_at - issued_at, `ends in ${span(left)}`);
    },
  );
}
