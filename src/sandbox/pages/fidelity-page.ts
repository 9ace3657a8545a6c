import type { Answer } from '../http/answer.ts';
import { LEDGER } from '../ledger/ledger.ts';
import { locate } from '../ledger/rule.ts';
import { renderPage } from './render.ts';

/** The fidelity ledger: each rule of the service, and the tests that hold it. */
export function fidelityPage(): Answer {
  const rows = LEDGER.map((rule) => ({ ...rule, cases: rule.cases.map(locate) }));
  return renderPage('fidelity.eta', {
    sections: [...Map.groupBy(rows, ({ section }) => section)],
    total: rows.length,
    specified: rows.filter(({ source }) => source === 'specified').length,
    open: rows.filter(({ cases }) => cases.length === 0).length,
  });
}
