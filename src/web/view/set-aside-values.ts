import type { InstanceState, ResourceStatus } from '../../sync/status-types.ts';
import { formatCount, formatNumber } from './format.ts';
import type { LiveValues } from './live-values.ts';

/** Lines of each kind that the page has room for; of what is beyond them it says the number. */
export const SET_ASIDE_LINES = 5;

/** One of the lines: what it is about, and why. */
interface Line {
  what: string;
  why: string;
}

type Batch = ResourceStatus['set_aside']['parked_batches'][number];
type Quarantined = ResourceStatus['set_aside']['quarantined_records'][number];

/** The heading says already that it was the own logic, and the list whose batch it is. */
const SAID = /^The app['’]s own logic failed on a batch of [^:]*: /;

function sentence(error: string): string {
  const text = error.replace(SAID, '').trimEnd();
  return /[.!?…]$/.test(text) ? text : `${text}.`;
}

function batchLine({ records, first_id, tries, error }: Batch): Line {
  const ids = first_id === null ? '' : records === 1 ? `: ${first_id}` : `, from ${first_id} on`;
  return {
    what: `${formatCount(records, 'record')}${ids}`,
    why: `${sentence(error)} Tried ${formatCount(tries, 'time')}.`,
  };
}

function quarantinedLine({ reason, excerpt, length }: Quarantined): Line {
  const rest = length > excerpt.length ? ` … (${formatNumber(length)} characters)` : '';
  return { what: excerpt + rest, why: reason };
}

function more(count: number, shown: number): string {
  return count > shown ? `And ${formatNumber(count - shown)} more.` : '';
}

/** The values of a numbered list of lines under a name; lines that there are not are hidden. */
function lineValues(name: string, lines: readonly Line[], rest: string): LiveValues {
  const values: LiveValues = { text: {}, time: {}, attributes: {}, show: {} };
  for (let n = 0; n < SET_ASIDE_LINES; n++) {
    values.text[`${name}.${n}.what`] = lines[n]?.what ?? '';
    values.text[`${name}.${n}.why`] = lines[n]?.why ?? '';
    values.show[`${name}.${n}`] = lines[n] !== undefined;
  }
  values.text[`${name}.more`] = rest;
  values.show[`${name}.more`] = rest !== '';
  values.show[name] = lines.length > 0;
  return values;
}

/**
 * What a resource has set aside, under its name: batches that the own logic did not take, records that cannot be kept.
 */
export function setAsideValues(name: string, { set_aside: aside }: ResourceStatus): LiveValues[] {
  const batches = aside.parked_batches.slice(0, SET_ASIDE_LINES);
  const records = aside.quarantined_records.slice(0, SET_ASIDE_LINES);
  return [
    lineValues(`${name}.parked`, batches.map(batchLine), more(aside.parked, batches.length)),
    lineValues(`${name}.quarantined`, records.map(quarantinedLine), more(aside.quarantined, records.length)),
  ];
}

/** Whether anything at all is shown as set aside, and whether there is something to try again. */
export function setAsideShown(resources: readonly ResourceStatus[], instance: InstanceState): LiveValues {
  const parked = resources.some(({ set_aside: { parked } }) => parked > 0);
  const quarantined = resources.some(({ set_aside: { quarantined } }) => quarantined > 0);
  return {
    text: {},
    time: {},
    attributes: {},
    show: {
      parked,
      quarantined,
      'set-aside': parked || quarantined,
      'action.retry': parked && instance === 'active',
    },
  };
}
