import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, it } from 'vitest';
import { createWorld } from './support/world.ts';

const PASSWORD = 'the operator’s own words';
const wrong = { authorization: `Basic ${Buffer.from('operator:wrong').toString('base64')}` };

describe('25. Attempts to install and log in are limited, bodies are bounded, slow clients time out.', async () => {
  const world = await createWorld({ env: { OPERATOR_PASSWORD: PASSWORD, PROXY_HOPS: '1' } });
  await world.startWeb();
  const owner = world.browser();
  const id = await world.install(owner, await world.control.addCompany({ name: 'Limits' }));

  /** Opens a connection, and sends a beginning and then a byte or line every now and then, to its end. */
  async function drip(beginning: string, drop: string): Promise<{ text: string; seconds: number }> {
    const startedAt = performance.now();
    const socket = connect(Number(world.env.PORT), '127.0.0.1').on('error', () => undefined);
    await once(socket, 'connect');
    let text = '';
    socket.setEncoding('latin1').on('data', (chunk) => {
      text += chunk;
    });
    socket.write(beginning);
    const dripping = setInterval(() => socket.write(drop), 250);
    const patience = setTimeout(() => socket.destroy(), 40_000);
    // A reset is an end, too.
    await new Promise((resolve) => socket.once('close', resolve));
    clearTimeout(patience);
    clearInterval(dripping);
    return { text, seconds: (performance.now() - startedAt) / 1_000 };
  }

  // They wait for the app's own limits while the other tests run.
  const slow = {
    headers: drip('GET / HTTP/1.1\r\nHost: app.example\r\n', 'X-Slow: 1\r\n'),
    form: drip(
      'POST /logout HTTP/1.1\r\nHost: app.example\r\nSec-Fetch-Site: same-origin\r\nContent-Length: 1000\r\n' +
        'Content-Type: application/x-www-form-urlencoded\r\n\r\na=',
      'x',
    ),
  };

  it.each<[string, string, string, Record<string, string>, number]>([
    ['installs that begin', '10.0.0.1', '/install', {}, 302],
    ['made-up ways back', '10.0.0.2', '/oauth/callback?state=a&code=b', {}, 400],
    ['wrong passwords', '10.0.0.3', '/ops', wrong, 401],
  ])('limits %s of one address, and lets others in', async (_what, address, path, given, usual) => {
    const from = (addresses: string) => ({
      follow: false,
      headers: { ...given, 'x-forwarded-for': addresses },
    });
    const mark = await world.control.mark();
    const statuses: number[] = [];
    let page = await world.browser().get(path, from(address));
    while (page.status !== 429 && statuses.length < 300) {
      statuses.push(page.status);
      page = await world.browser().get(path, from(address));
    }
    expect(page.status).toBe(429);
    expect(statuses.length).toBeGreaterThanOrEqual(3);
    expect(new Set(statuses)).toEqual(new Set([usual]));
    expect(Number(page.headers.get('retry-after'))).toBeGreaterThan(0);
    expect(page.text()).toMatch(/try again/i);
    expect(await world.control.tokenRequests(mark)).toEqual([]);
    // An address that the client itself has written stands in front of the one that the proxy adds.
    const forged = await world.browser().get(path, from(`192.0.2.1, ${address}`));
    expect(forged.status).toBe(429);
    expect((await world.browser().get(path, from('10.1.1.1'))).status).toBe(usual);
    expect((await owner.get(`/instances/${id}`)).status).toBe(200);
  });

  it.each([
    ['a field of a megabyte', `a=${'x'.repeat(1_000_000)}`],
    ['a hundred thousand fields', 'a=b&'.repeat(100_000)],
  ])('refuses %s', async (_what, body) => {
    for (const path of ['/logout', `/instances/${id}/pause`]) {
      const headers = { 'content-type': 'application/x-www-form-urlencoded' };
      const page = await owner.post(path, new URLSearchParams(body), { headers });
      expect(page.status, path).toBe(413);
    }
    expect((await world.status(owner, id)).status).toBe('active');
  });

  it.each(['headers', 'form'] as const)('ends the connection of a client that drips its %s', async (what) => {
    const { text, seconds } = await slow[what];
    expect(seconds).toBeLessThan(30);
    expect(text).toMatch(/^(HTTP\/1\.1 408 |$)/);
    expect((await owner.get('/')).status).toBe(200);
  });
});
