import { expect, test } from 'vitest';
import type { SandboxCompany } from '../acceptance/support/sandbox-control.ts';
import { consent, install, readStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

const { control, session } = await startTestApp({ workers: false });

const HTML = { 'content-type': 'text/html' };

/** What may come in place of the answer about the company, without saying that the service does not tell. */
const TROUBLES = [
  ['a page in HTML', { status: 200, headers: HTML, body: '<h1>Back in a minute</h1>' }],
  ['nothing, with 204', { status: 204, body: '' }],
  ['400', { status: 400, body: {} }],
  ['401', { status: 401, body: {} }],
  ['a redirect', { status: 302, headers: { location: '/api/contacts' }, body: '' }],
  ['410', { status: 410, body: '' }],
  ['JSON that is cut short', { status: 200, body: '{"id":"cm' }],
  ['a list', { status: 200, body: [] }],
] as const;

async function questionsAbout({ id }: SandboxCompany) {
  const rows = await control.requests();
  return rows.filter(({ path, company_id }) => path === '/me' && company_id === id);
}

test.concurrent.each(TROUBLES)('%s, once, makes no second instance of a company', async (what, fault) => {
  const company = await control.addCompany({ name: `Once ${what}`, plan: 'starter' });
  const browser = session();
  const id = await install(browser, company);
  await control.fault({ match: { path: '/me', company_id: company.id }, fault, times: 1 });
  expect(await install(browser, company)).toBe(id);
  expect((await questionsAbout(company)).length).toBe(3);
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

/** What an install of a company ends in whose identity route refuses so, and when that was asked. */
async function installRefused(name: string, status: number, retryAfter: string) {
  const company = await control.addCompany({ name, plan: 'starter' });
  await control.fault({
    match: { path: '/me', company_id: company.id },
    fault: { status, headers: { 'retry-after': retryAfter }, body: {} },
    times: 100,
  });
  const browser = session();
  const page = await consent(browser, await browser.get('/install'), company);
  return { page, times: (await questionsAbout(company)).map(({ at }) => at) };
}

test.concurrent('a service that wants to be asked again at once is asked a few times, with growing pauses', async () => {
  const { page, times } = await installRefused('Hurried', 503, '0');
  expect(page.status).toBe(502);
  expect(times.length).toBe(3);
  // Half of each pause is certain: of 500 ms and 1 s.
  expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeGreaterThan(700);
});

test.concurrent('a company whose limit is used up is told to wait, and how long', async () => {
  const { page, times } = await installRefused('Busy', 429, '47');
  expect(page.status).toBe(503);
  expect(page.body).toContain('The service takes no more requests for now');
  expect(page.body).toContain('It asks to wait 47 s.');
  expect(times.length).toBe(1);
});
