import { expect, test } from 'vitest';
import { consent, install, readStatus } from '../support/install.ts';
import type { SandboxCompany } from '../support/sandbox-control.ts';
import { startTestApp } from '../support/test-app.ts';

const { control, session } = await startTestApp({ workers: false });

const HTML = { 'content-type': 'text/html' };

/** What may come in place of the answer about the company, without saying that the service does not tell. */
const TROUBLES = [
  ['a page in HTML', { status: 200, headers: HTML, body: '<h1>Back in a minute</h1>' }],
  ['nothing, with 204', { status: 204, body: '' }],
  ['400', { status: 400, body: {} }],
  ['a redirect', { status: 302, headers: { location: '/api/contacts' }, body: '' }],
  ['410', { status: 410, body: '' }],
  ['JSON that is cut short', { status: 200, body: '{"id":"cm' }],
  ['a list', { status: 200, body: [] }],
  ['an id that is none', { status: 200, body: { id: '' } }],
] as const;

async function askedAbout({ id }: SandboxCompany): Promise<number> {
  const rows = await control.requests();
  return rows.filter(({ path, company_id }) => path === '/me' && company_id === id).length;
}

test.concurrent.each(TROUBLES)('%s, once, makes no second instance of a company', async (what, fault) => {
  const company = await control.addCompany({ name: `Once ${what}`, plan: 'starter' });
  const browser = session();
  const id = await install(browser, company);
  await control.fault({ match: { path: '/me', company_id: company.id }, fault, times: 1 });
  expect(await install(browser, company)).toBe(id);
  expect(await askedAbout(company)).toBe(3);
});

test.concurrent('when it stays so, the install fails plainly, and what was installed before goes on', async () => {
  const company = await control.addCompany({ name: 'Always', plan: 'starter' });
  const [before, browser] = [session(), session()];
  const id = await install(before, company);
  const body = '<h1>Back in an hour</h1>';
  await control.fault({
    match: { path: '/me', company_id: company.id },
    fault: { status: 200, headers: HTML, body },
    times: 100,
  });
  const page = await consent(browser, await browser.get('/install'), company);
  expect(page.status).toBe(502);
  expect(page.body).toContain('The service did not say which company this is.');
  expect(page.body).toMatch(/href="[^"]*\/install"/);
  expect((await browser.get('/')).body).not.toContain('/instances/');
  expect(await readStatus(before, id)).toMatchObject({ status: 'active', company_id: company.id });
});
