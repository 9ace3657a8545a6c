import { once } from 'node:events';
import { createServer, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, test } from 'vitest';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';

const HOUR_MS = 3_600_000;

/** A proxy as a company has it at its way out. @returns its address, and what was asked for through it */
async function startProxy() {
  const asked = new Set<string>();
  const proxy = createServer((inward, outward) => {
    const { method, headers, url = '' } = inward;
    asked.add(`${method} ${new URL(url).pathname}`);
    const onward = request(url, { method, headers }, (answer) => {
      outward.writeHead(answer.statusCode ?? 502, answer.rawHeaders);
      answer.pipe(outward);
    });
    // The sandbox ends before the worker does.
    onward.on('error', () => outward.destroy());
    inward.pipe(onward);
  });
  // Who wants a tunnel asks in it: by http, as here, so that it can be read.
  proxy.on('connect', ({ url = '' }, inward) => {
    const { hostname, port } = new URL(`http://${url}`);
    const outward = connect(Number(port), hostname, () => inward.write('HTTP/1.1 200 OK\r\n\r\n'));
    inward.on('data', (chunk) => {
      const [, line] = /^(\w+ \S+) HTTP/.exec(String(chunk)) ?? [];
      if (line !== undefined) asked.add(line);
    });
    inward.pipe(outward).pipe(inward);
    for (const end of [inward, outward]) end.on('error', () => undefined);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, asked, proxy };
}

test('where a proxy leads out, and Node is told so, tokens, pages and the question for the time go by it', async () => {
  const { env, control, session } = await startTestApp({ workers: false });
  const company = await control.addCompany({ name: 'Behind', plan: 'starter', contacts: 150 });
  const browser = session();
  const id = await install(browser, company);
  // The access token that the install has brought is over.
  await control.clock({ advance_ms: 2 * HOUR_MS });

  const { url, asked, proxy } = await startProxy();
  spawnEntry('src/worker.ts', { ...env, NODE_USE_ENV_PROXY: '1', HTTP_PROXY: url });
  await waitForStatus(browser, id, isSynced);
  const { pathname } = new URL(`${env.SERVICE_API_URL}/contacts`);
  const token = new URL(`${env.SERVICE_AUTH_URL}/oauth/token`).pathname;
  const { pathname: time } = new URL(env.SERVICE_AUTH_URL ?? '');
  expect([...asked]).toEqual(expect.arrayContaining([`POST ${token}`, `GET ${pathname}`, `HEAD ${time}`]));
  proxy.close();
});
