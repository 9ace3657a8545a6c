import type { SeenRequest } from './companies.ts';
import type { SyncedCompany } from './sync-company.ts';

/** What the demo says at its end about one company. */
interface SummaryRow {
  name: string;
  records: number;
  pages: number;
  requests: number;
  refused: number;
  renewed: number;
}

/** Adds up what happened to a company; `seen` is the sandbox's own account. */
export function summarize({ company, status }: SyncedCompany, seen: readonly SeenRequest[]): SummaryRow {
  const resources = Object.values(status.resources);
  const sum = (pick: (resource: (typeof resources)[number]) => number) =>
    resources.reduce((total, resource) => total + pick(resource), 0);
  return {
    name: company.name,
    records: sum(({ records }) => records),
    pages: sum(({ pages }) => pages),
    requests: seen.length,
    refused: seen.filter((request) => request.status === 429).length,
    renewed: status.token.refreshes,
  };
}

const COLUMNS = ['records', 'pages', 'requests', 'refused', 'renewed'] as const;
const TITLES = {
  records: 'records',
  pages: 'pages',
  requests: 'requests',
  refused: '429s',
  renewed: 'tokens renewed',
};

/** The table of all companies, with what it took in all. */
export function summaryTable(rows: readonly SummaryRow[], seconds: number): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const line = (name: string, cells: (column: (typeof COLUMNS)[number]) => string | number) =>
    `  ${name.padEnd(width)}${COLUMNS.map((column) => String(cells(column)).padStart(TITLES[column].length + 3)).join('')}`;
  const records = rows.reduce((total, row) => total + row.records, 0);
  return [
    line('', (column) => TITLES[column]),
    ...rows.map((row) => line(row.name, (column) => row[column])),
    '',
    `  ${records} records in ${seconds.toFixed(1)} s: nothing is missing, nothing is double.`,
  ].join('\n');
}
