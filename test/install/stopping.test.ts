import { expect, test } from 'vitest';
import { consent, install } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

test('an install that comes back when its process is about to end exchanges no code, and a page says so', async () => {
  const { app, control, session } = await startTestApp({ workers: false });
  const company = await control.addCompany({ name: 'Acme', plan: 'starter' });
  const browser = session();
  const id = await install(browser, company);
  const exchanges = async () =>
    (await control.requests()).filter(({ path }) => path.endsWith('/token')).length;
  const before = await exchanges();
  const consentPage = await browser.get('/install');
  app.end();
  const page = await consent(browser, consentPage, company);
  expect(page.status).toBe(503);
  expect(page.body).toContain('The app is being stopped');
  expect(page.body).toContain('Of a company that was installed before, the app has changed nothing.');
  expect(page.body).toContain('>Start again</a>');
  expect(await exchanges()).toBe(before);
  expect((await browser.get(`/instances/${id}`)).status).toBe(200);
});
