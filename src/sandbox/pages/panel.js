/*
 * The control panel, in the browser. The server makes the page; this asks for it twice a second, and at once after each
 * change, and takes over what differs. Buttons and forms call the control interface: `data-call` says which call.
 */
import { Idiomorph } from '/idiomorph.esm.js';

const LOOK_MS = 500;

const ids = ['panel', 'failed', 'said', 'journal', 'pause', 'held', 'kind', 'header', 'unit'];
const [panel, failed, said, journal, pause, held, kind, header, unit] = ids.map((id) =>
  document.getElementById(id),
);

let timer;
let isLost = false;
let isPaused = false;
/** One look after the other, so that the newest page stays. */
let looking = Promise.resolve();

/** A paused journal stays as it is, unless a reset began it anew. */
function isHeld(next) {
  return isPaused && Number(next.dataset.count) >= Number(journal.dataset.count);
}

/** What is equal is left alone: fields keep what is typed and chosen. `data-own` marks what the browser decides. */
function mayMorph(old, next) {
  return !(old.isEqualNode(next) || old.dataset?.own !== undefined || (old === journal && isHeld(next)));
}

function show(page) {
  const next = new DOMParser().parseFromString(page, 'text/html').getElementById('panel');
  const newer = Number(next.querySelector('#journal').dataset.count) - Number(journal.dataset.count);
  Idiomorph.morph(panel, next, { callbacks: { beforeNodeMorphed: mayMorph } });
  held.textContent = isPaused ? `Paused; ${newer} newer ${newer === 1 ? 'request' : 'requests'}.` : '';
}

function fail(message) {
  failed.hidden = false;
  failed.textContent = message;
}

async function look() {
  clearTimeout(timer);
  try {
    const response = await fetch('/');
    if (!response.ok) throw new Error(`status ${response.status}`);
    show(await response.text());
    if (isLost) failed.hidden = true;
    isLost = false;
  } catch (error) {
    isLost = true;
    fail(`The sandbox does not answer: ${error.message}`);
  }
  if (!document.hidden) timer = setTimeout(lookNext, LOOK_MS);
}

function lookNext() {
  looking = looking.then(look);
  return looking;
}

/** The words for what a call has done: `{id}` stands for a member of the answer. */
function wordsFor(text, answer) {
  if (text !== undefined) return text.replace('{id}', answer.id);
  const time = new Date(answer.now).toISOString().slice(11, 19);
  return `It is ${time}, and the clock ${answer.frozen ? 'is frozen' : 'runs'}.`;
}

/** Calls the control interface as an element says, and tells what came of it. */
async function act(element, body) {
  const { call, confirm, said: text } = element.dataset;
  const section = element.closest('section');
  if (confirm && !window.confirm(confirm)) return;
  const [method, path] = call.split(' ');
  const json = { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
  try {
    const response = await fetch(`/_sandbox/${path}`, { method, ...(method === 'POST' ? json : {}) });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer._error.message);
    failed.hidden = true;
    said.textContent = wordsFor(text, answer);
  } catch (error) {
    return fail(error.message);
  }
  await lookNext();
  // A button that removed itself hands the focus on.
  if (element.isConnected) return;
  section.tabIndex = -1;
  section.focus();
}

function read(field) {
  if (field.value === '') return null;
  if (field.dataset.json !== undefined) return JSON.parse(field.value);
  if (field.name === 'advance_ms') return Math.round(field.valueAsNumber * Number(unit.value));
  return field.matches('[type=number], [type=datetime-local]') ? field.valueAsNumber : field.value;
}

/** A form as JSON: names are paths, and what is empty is left out. */
function jsonOf(form) {
  const body = {};
  for (const field of form.querySelectorAll('[name]:enabled:not([type=checkbox]:not(:checked))')) {
    const value = read(field);
    if (value === null && field.dataset.nullable === undefined) continue;
    const path = field.name.split('.');
    const last = path.pop() || header.value;
    const parent = path.reduce((object, key) => {
      object[key] ??= {};
      return object[key];
    }, body);
    parent[last] = value;
  }
  return body;
}

function showKind() {
  for (const fields of document.querySelectorAll('[data-kind]'))
    fields.disabled = fields.dataset.kind !== kind.value;
}

document.addEventListener('click', ({ target }) => {
  const button = target.closest('button[data-call]');
  if (button) void act(button, JSON.parse(button.dataset.body ?? '{}'));
});
document.addEventListener('submit', (event) => {
  event.preventDefault();
  void act(event.target, jsonOf(event.target));
});
pause.addEventListener('click', () => {
  isPaused = !isPaused;
  pause.setAttribute('aria-pressed', String(isPaused));
  void lookNext();
});
kind.addEventListener('change', showKind);
document.addEventListener('visibilitychange', () => document.hidden || void lookNext());
showKind();
void lookNext();
