import { type ListProblems, type ListStatusJson, PROBLEMS_IN_STATUS } from '../../sync/status-types.ts';
import type { WebResource } from '../web-dependencies.ts';
import { formatNumber } from './format.ts';
import type { LiveValues } from './live-values.ts';
import { recordAddress } from './paging.ts';

/** One of the lines: what it is about, and why. */
interface Line {
  what: string;
  why: string;
  /** The id of the record, where there is one in the copy. */
  id?: string;
}

/** What the pages say of each kind of problem, and how they read it. */
export const PROBLEM_KINDS: readonly {
  kind: 'dead' | 'rejected';
  title: string;
  text: string;
  linesOf: (problems: ListProblems) => Line[];
  count: (problems: ListProblems, list: ListStatusJson) => number;
}[] = [
  {
    kind: 'dead',
    title: 'Dead letters',
    text: 'The handler could not take these records. They are in the copy. The people who run the app have to look at the reason; then try again.',
    linesOf: ({ dead_letters }) => dead_letters.map(({ id, error }) => ({ what: id, why: error, id })),
    count: ({ dead_letters }, { handler }) => handler?.dead_letters ?? dead_letters.length,
  },
  {
    kind: 'rejected',
    title: 'Rejected records',
    text: 'These records cannot be kept. The others of their pages are in the copy. Correct them at the service: the next sync copies them then.',
    linesOf: ({ rejected_records }) =>
      rejected_records.map(({ reason, excerpt, length }) => {
        const rest = length > excerpt.length ? ` … (${formatNumber(length)} characters)` : '';
        return { what: excerpt + rest, why: reason };
      }),
    count: ({ rejected }) => rejected,
  },
];

function moreText(count: number, shown: number): string {
  return count > shown ? `And ${formatNumber(count - shown)} more.` : '';
}

/** All problems of an instance, by kind and list: those that there are any of. */
export function problemSections(
  resources: readonly WebResource[],
  statuses: Readonly<Record<string, ListStatusJson>>,
  found: Readonly<Record<string, ListProblems>>,
  instanceAddress: string,
) {
  return PROBLEM_KINDS.map(({ title, text, linesOf, count }) => ({
    title,
    text,
    lists: resources.flatMap((resource) => {
      const [problems, status] = [found[resource.name], statuses[resource.name]];
      const lines = problems ? linesOf(problems) : [];
      if (!problems || !status || lines.length === 0) return [];
      const base = `${instanceAddress}/${resource.name}`;
      return [
        {
          title: resource.title,
          lines: lines.map((line) => ({
            ...line,
            address: line.id === undefined ? null : recordAddress(base, line.id),
          })),
          more: moreText(count(problems, status), lines.length),
        },
      ];
    }),
  })).filter(({ lists }) => lists.length > 0);
}

/** The problems of a list as numbered lines under its name; lines that there are not are hidden. */
export function problemValues(name: string, list: ListStatusJson): LiveValues {
  const values: LiveValues = { text: {}, time: {}, attributes: {}, show: {} };
  for (const { kind, linesOf, count } of PROBLEM_KINDS) {
    const key = `${name}.${kind}`;
    const lines = linesOf(list.problems);
    for (let n = 0; n < PROBLEMS_IN_STATUS; n++) {
      values.text[`${key}.${n}.what`] = lines[n]?.what ?? '';
      values.text[`${key}.${n}.why`] = lines[n]?.why ?? '';
      values.show[`${key}.${n}`] = lines[n] !== undefined;
    }
    const more = moreText(count(list.problems, list), Math.min(lines.length, PROBLEMS_IN_STATUS));
    values.text[`${key}.more`] = more;
    values.show[`${key}.more`] = more !== '';
    values.show[key] = lines.length > 0;
  }
  return values;
}

/** Which kinds of problems there are at all. */
export function problemsShown(lists: readonly ListStatusJson[]): LiveValues {
  const show: Record<string, boolean> = {};
  for (const { kind, linesOf } of PROBLEM_KINDS) {
    show[kind] = lists.some(({ problems }) => linesOf(problems).length > 0);
  }
  show.problems = Object.values(show).includes(true);
  return { text: {}, time: {}, attributes: {}, show };
}
