import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import { install, startWeb } from './start-web.ts';

test('where Redis takes no writes, an answer is whole, its connection is good for the next one, and no line says otherwise', async () => {
  const web = await startWeb();
  const browser = web.browser();
  await install(browser);
  const cookie = `${SESSION_COOKIE}=${browser.cookies.get(new URL(web.url), SESSION_COOKIE)}`;
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const known = web.log.lines.length;
  // What a Redis says that is a copy of another, or full.
  web.redis.expire = () =>
    Promise.reject(new Error('READONLY You can not write against a read only replica.'));
  const answers: [number | undefined, boolean][] = [];
  for (const path of ['/nowhere', '/instances/ins_1', '/nowhere', '/instances/ins_1']) {
    const asked = request(`${web.url}${path}`, { agent, headers: { cookie } }).end();
    const [answer]: IncomingMessage[] = await once(asked, 'response');
    if (answer === undefined) expect.unreachable();
    expect(await text(answer)).toContain('</html>');
    answers.push([answer.statusCode, asked.reusedSocket]);
  }
  agent.destroy();
  expect(answers).toEqual([
    [404, false],
    [200, true],
    [404, true],
    [200, true],
  ]);
  expect(web.log.lines.slice(known).filter(({ level }) => level === 'error')).toEqual([]);
});
