import { beforeEach, expect, it } from 'vitest';
import type { HttpSession } from '../support/http-session.ts';
import { connectThroughGate, type RedisGate } from '../support/redis-gate.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

let gate: RedisGate;
let web: StartedWeb;
let browser: HttpSession;
beforeEach(async () => {
  gate ??= await connectThroughGate((await startTestRedis()).url);
  await gate.redis.flushall();
  web = await startWeb({ redis: gate.redis });
  browser = web.browser();
  await install(browser);
});

async function formToDisconnect() {
  return (await browser.get('/instances/ins_1')).form('/instances/ins_1/disconnect');
}

it('a disconnect that this browser’s session cannot be told of says what happened, and how to see the copy again', async () => {
  const form = await formToDisconnect();
  const held = gate.arm(':change', 'hold');
  const pressed = browser.submit(form);
  await held;
  const page = await pressed;
  gate.release();
  expect(page.status).toBe(503);
  expect(page.body).toContain('The company is disconnected.');
  expect(page.body).toContain('install it again to see the copy that was kept');
  expect(page.body).not.toContain('deleted');
  expect(web.domain.instances.get('ins_1')?.status).toBe('disconnected');
});

it('a disconnect whose copy cannot be deleted at the moment does not say that nothing was done', async () => {
  const { disconnect } = web.domain.control;
  web.domain.control.disconnect = async (...args) => {
    await disconnect(...args);
    throw Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
  };
  const page = await browser.submit(await formToDisconnect(), { delete_data: 'yes' });
  expect(page.status).toBe(503);
  expect(page.body).toContain('The company is disconnected. Its copied data is being deleted.');
  expect(page.body).not.toContain('nothing was done');
  const again = await browser.submit(await formToDisconnect(), { delete_data: 'yes' });
  expect(again.body).toContain('Its copied data is being deleted.');
  expect(again.body).not.toContain('The company is disconnected.');
});

it('a disconnect that comes to nothing, for want of the database, says so', async () => {
  web.domain.control.disconnect = async () => {
    throw Object.assign(new Error('database is locked'), { code: 'SQLITE_BUSY' });
  };
  const page = await browser.submit(await formToDisconnect());
  expect(page.status).toBe(503);
  expect(page.body).toContain('nothing was done');
});
