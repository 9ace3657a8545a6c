import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { migrateFurther } from '../store/migrate-further.ts';
import { consent, install } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

/** A deploy: a newer version has migrated the database of a web process that has not noticed yet. */
const testApp = await startTestApp({ workers: false });

test('a form or an install that a newer version was quicker than changes nothing, and says so', async () => {
  const [known, late] = [
    await testApp.control.addCompany({ name: 'Known', plan: 'starter' }),
    await testApp.control.addCompany({ name: 'Late', plan: 'starter' }),
  ];
  const browser = testApp.session();
  const id = await install(browser, known);
  const dashboard = await browser.get(`/instances/${id}`);
  const consentPage = await browser.get('/install');

  const db = new Sqlite(testApp.config.databaseUrl.replace('file:', ''));
  migrateFurther(db);
  const tables = () =>
    ['instances', 'tokens', 'runs'].map((name) => db.prepare(`select * from ${name}`).all());
  const before = tables();
  const answers = [];
  for (const button of ['sync', 'pause', 'logout-others', 'disconnect']) {
    answers.push(await browser.submit(dashboard.form(`/instances/${id}/${button}`)));
  }
  answers.push(await consent(browser, consentPage, late));
  for (const { status, body } of answers) {
    expect(status).toBe(503);
    expect(body).toContain('so nothing was done');
  }
  expect(tables()).toEqual(before);
  db.close();
});
