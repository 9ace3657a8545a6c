import type { SeenRequest } from './companies.ts';
import type { SyncedCompany } from './sync-company.ts';

const TITLES = {
  records: 'records',
  pages: 'pages',
  requests: 'requests',
  refused: '429s',
  renewed: 'tokens renewed',
};

type Column = keyof typeof TITLES;
const COLUMNS = Object.keys(TITLES) as Column[];

type SummaryRow = Record<Column, number> & { name: string };

/** Adds up a company's figures: `seen` is the sandbox's journal, the rest comes from the app. */
export function summarize({ company, status }: SyncedCompany, seen: readonly SeenRequest[]): SummaryRow {
  const lists = Object.values(status.resources);
  return {
    name: company.name,
    records: lists.reduce((total, { records }) => total + records, 0),
    pages: lists.reduce((total, { pages }) => total + pages, 0),
    requests: seen.length,
    refused: seen.filter((request) => request.status === 429).length,
    renewed: status.token.refreshes,
  };
}

/** A table with a row for each company, and the total below. */
export function summaryTable(rows: readonly SummaryRow[], seconds: number): string {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const line = (name: string, cells: Record<Column, string | number>) =>
    `  ${name.padEnd(width)}${COLUMNS.map((column) => String(cells[column]).padStart(TITLES[column].length + 3)).join('')}`;
  const records = rows.reduce((total, row) => total + row.records, 0);
  return [
    line('', TITLES),
    ...rows.map((row) => line(row.name, row)),
    '',
    `  ${records} records in ${seconds.toFixed(1)} s: nothing is missing, nothing is double.`,
  ].join('\n');
}
