import {
  type InstanceState,
  type ResourceStatus,
  SET_ASIDE_IN_STATUS,
  type SetAsideStatus,
} from '../../sync/status-types.ts';
import type { WebResource } from '../web-dependencies.ts';
import { formatCount, formatNumber } from './format.ts';
import type { LiveValues } from './live-values.ts';

/** What the pages say of each kind. */
export const SET_ASIDE_KINDS = [
  {
    kind: 'parked',
    words:
      'Batches that the app’s own logic did not take. Their records are in the copy. The people who run the app have to mend it; each sync tries them once more.',
  },
  {
    kind: 'quarantined',
    words:
      'Records that cannot be kept. The others of their pages are in the copy. Whoever manages them at the service has to mend them there: the next sync copies them then.',
  },
] as const;

/** One of the lines: what it is about, and why. */
interface Line {
  what: string;
  why: string;
}

type Batch = SetAsideStatus['parked_batches'][number];
type Quarantined = SetAsideStatus['quarantined_records'][number];

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

/** The lines of a kind, as many as are known and wanted, and how many more there are. */
function linesOf(
  kind: 'parked' | 'quarantined',
  aside: SetAsideStatus,
  most = Number.POSITIVE_INFINITY,
): { lines: Line[]; more: string } {
  const lines =
    kind === 'parked'
      ? aside.parked_batches.slice(0, most).map(batchLine)
      : aside.quarantined_records.slice(0, most).map(quarantinedLine);
  return { lines, more: more(aside[kind], lines.length) };
}

/** All that is known to be set aside, by kind and list: those that there are any of. */
export function setAsideSections(
  resources: readonly WebResource[],
  found: Readonly<Record<string, SetAsideStatus>>,
) {
  return SET_ASIDE_KINDS.map(({ kind, words }) => {
    const lists = resources.flatMap(({ name, title }) => {
      const aside = found[name];
      return aside?.[kind] ? [{ title, ...linesOf(kind, aside) }] : [];
    });
    return { words, lists };
  }).filter(({ lists }) => lists.length > 0);
}

/** The values of a numbered list of lines under a name; lines that there are not are hidden. */
function lineValues(name: string, lines: readonly Line[], rest: string): LiveValues {
  const values: LiveValues = { text: {}, time: {}, attributes: {}, show: {} };
  for (let n = 0; n < SET_ASIDE_IN_STATUS; n++) {
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
  const parked = linesOf('parked', aside, SET_ASIDE_IN_STATUS);
  const quarantined = linesOf('quarantined', aside, SET_ASIDE_IN_STATUS);
  return [
    lineValues(`${name}.parked`, parked.lines, parked.more),
    lineValues(`${name}.quarantined`, quarantined.lines, quarantined.more),
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
