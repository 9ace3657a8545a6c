import { expect, test } from 'vitest';
import { LaterSession } from '../../src/web/later-session.ts';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import { install, startWeb } from './start-web.ts';

test('a session is followed over installs, also when nobody else remembers the first any more, until its browser logs out', async () => {
  const web = await startWeb();
  const browser = web.browser();
  await install(browser);
  const cookie = decodeURIComponent(browser.cookies.get(new URL(web.url), SESSION_COOKIE) ?? '');
  const id = cookie.replace(/^s:|\..*$/g, '');
  const later = new LaterSession(web.redis, id);
  expect((await later.read())?.instances).toEqual(['ins_1']);
  await install(browser, 'ins_2');
  expect((await later.read())?.instances).toEqual(['ins_2', 'ins_1']);
  expect(await web.redis.del(`ended-session:${id}`)).toBe(1);
  await install(browser, 'ins_3');
  expect((await later.read())?.instances).toEqual(['ins_3', 'ins_2', 'ins_1']);
  await browser.submit((await browser.get('/')).form('/logout'));
  expect(await later.read()).toBeUndefined();
});
