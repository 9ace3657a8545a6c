import type { ListProblems, ListStatusJson } from '../../sync/status-types.ts';
import type { WebResource } from '../web-dependencies.ts';
import { formatNumber } from './format.ts';
import { recordAddress } from './paging.ts';

/** One of the lines: what it is about, and why. */
interface Line {
  what: string;
  why: string;
  /** The id of the record, where there is one in the copy. */
  id?: string;
}

/** What the pages say of each kind of problem, and how they read it. */
const KINDS: readonly {
  kind: 'dead' | 'rejected';
  title: string;
  text: string;
  linesOf: (problems: ListProblems) => Line[];
  count: (problems: ListProblems, list: ListStatusJson) => number;
}[] = [
  {
    kind: 'dead',
    title: 'Dead letters',
    text: 'The handler could not process these records. They are in the copy. When the reason is mended, try them again.',
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

/** The problems of an instance, by kind and list: those that there are any of. */
export function problemSections(
  resources: readonly WebResource[],
  statuses: Readonly<Record<string, ListStatusJson>>,
  found: Readonly<Record<string, ListProblems>>,
  instanceAddress: string,
) {
  return KINDS.map(({ kind, title, text, linesOf, count }) => ({
    kind,
    title,
    text,
    lists: resources.flatMap((resource) => {
      const [problems, status] = [found[resource.name], statuses[resource.name]];
      const lines = problems ? linesOf(problems) : [];
      if (!problems || !status || lines.length === 0) return [];
      const base = `${instanceAddress}/${resource.name}`;
      const more = count(problems, status) - lines.length;
      return [
        {
          title: resource.title,
          lines: lines.map((line) => ({
            ...line,
            address: line.id === undefined ? null : recordAddress(base, line.id),
          })),
          more: more > 0 ? `And ${formatNumber(more)} more.` : '',
        },
      ];
    }),
  })).filter(({ lists }) => lists.length > 0);
}
