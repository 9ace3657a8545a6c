// How times, lengths of time and faults are put into words.

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** `2027-03-14 10:30:15`, in UTC. */
export function moment(ms) {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ');
}

/** `10:30:15`, in UTC. */
export function timeOfDay(ms) {
  return new Date(ms).toISOString().slice(11, 19);
}

/** `59 min 12 s`: the two largest units. */
export function span(ms) {
  const left = Math.max(0, ms);
  if (left < 10 * SECOND_MS) return `${(left / SECOND_MS).toFixed(1)} s`;
  if (left < MINUTE_MS) return `${Math.ceil(left / SECOND_MS)} s`;
  if (left < HOUR_MS)
    return `${Math.floor(left / MINUTE_MS)} min ${Math.floor((left % MINUTE_MS) / SECOND_MS)} s`;
  if (left < DAY_MS) return `${Math.floor(left / HOUR_MS)} h ${Math.floor((left % HOUR_MS) / MINUTE_MS)} min`;
  return `${Math.floor(left / DAY_MS)} d ${Math.floor((left % DAY_MS) / HOUR_MS)} h`;
}

/** `1 request`, `5 requests`. */
export function count(number, one, more = `${one}s`) {
  return `${number.toLocaleString('en')} ${number === 1 ? one : more}`;
}

/** A guard's bucket, which is a list in JSON: `conversation changes · cnv_1`. */
export function bucket(text) {
  return JSON.parse(text)
    .filter((part) => part !== '')
    .join(' · ');
}

const FAULT_PARTS = {
  status: (status) => `answers ${status}`,
  body: () => 'another body',
  headers: (headers) => `headers: ${Object.keys(headers).join(', ')}`,
  delay_ms: (ms) => `held back ${ms} ms`,
  truncate: (bytes) => `cut after ${bytes} bytes`,
  drip: ({ bytes, every_ms }) => `drips ${bytes} bytes every ${every_ms} ms`,
  drop: (when) => (when === 'before' ? 'no answer, no effect' : 'connection lost after the effect'),
  revoke: (what) => (what === 'grant' ? 'revokes the grant' : 'revokes the access token'),
  records: ({ resource, reorder, ...counts }) =>
    [`${resource} change`, ...Object.entries(counts).map(([what, records]) => `${what} ${records}`)]
      .concat(reorder ? ['reorder'] : [])
      .join(', '),
};

/** What goes wrong: `answers 503, headers: retry-after`. */
export function faultWords(fault) {
  return Object.entries(fault)
    .map(([part, value]) => FAULT_PARTS[part]?.(value) ?? part)
    .join(', ');
}
