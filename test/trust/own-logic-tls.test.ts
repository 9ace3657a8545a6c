import { once } from 'node:events';
import { createServer as createProxy } from 'node:http';
import { createServer } from 'node:https';
import { type AddressInfo, connect, type Server } from 'node:net';
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import { afterAll, afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { OAuthClient } from '../../src/auth/oauth-client.ts';
import { STRAIGHT } from '../../src/client/agent.ts';
import { HttpClient } from '../../src/client/http.ts';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { SELF_SIGNED } from '../support/self-signed.ts';

const asked: string[] = [];
const stranger = createServer(SELF_SIGNED, (request, response) => {
  asked.push(`${request.headers.authorization}`);
  response.end('{}');
});
let tunnels = 0;
const proxy = createProxy().on('connect', (_request, socket) => {
  tunnels++;
  const onward = connect(port(stranger), 'localhost', () => {
    socket.write('HTTP/1.1 200 Connected\r\n\r\n');
    socket.pipe(onward).pipe(socket);
  });
});
const strangeProxy = createServer(SELF_SIGNED).on('connect', (request, socket) => {
  asked.push(`${request.headers['proxy-authorization']}`);
  socket.end('HTTP/1.1 502 Bad Gateway\r\n\r\n');
});
const port = (server: Server) => (server.address() as AddressInfo).port;
for (const server of [stranger, proxy, strangeProxy]) await once(server.listen(0), 'listening');
const origin = `https://localhost:${port(stranger)}`;

/** The ways to the stranger: straight, by a proxy, and by one that is a stranger itself. */
const PROXIES = [
  undefined,
  `http://127.0.0.1:${port(proxy)}`,
  `https://user:password@localhost:${port(strangeProxy)}`,
];

const before = getGlobalDispatcher();

afterEach(() => {
  setGlobalDispatcher(before);
  delete process.env.NODE_TLS_REJECT_UNAUTHORIZED;
});

afterAll(() => {
  vi.unstubAllEnvs();
  for (const server of [stranger, proxy, strangeProxy]) server.close();
});

test.each<[string, () => void]>([
  ['nothing', () => undefined],
  [
    'a dispatcher of all requests that checks nothing',
    () => setGlobalDispatcher(new Agent({ connect: { rejectUnauthorized: false } })),
  ],
  [
    'the variable that switches the check off',
    () => {
      process.env.NODE_TLS_REJECT_UNAUTHORIZED = '0';
    },
  ],
])(
  'neither tokens nor the secret go to who has no good certificate, when own logic sets %s',
  async (_what, set) => {
    for (const by of PROXIES) {
      vi.stubEnv('HTTPS_PROXY', by);
      const wayOut = { ...STRAIGHT, usesProxy: by !== undefined };
      const oauth = new OAuthClient({
        authUrl: origin,
        clientId: 'app',
        clientSecret: 'secret',
        redirectUri: 'https://app.example/oauth/callback',
        clock: new ServiceClock(),
        wayOut,
      });
      const http = new HttpClient(undefined, undefined, wayOut);
      onTestFinished(() => http.close());
      set();
      await expect(oauth.refresh('refresh-token')).rejects.toMatchObject({
        cause: { cause: { code: 'DEPTH_ZERO_SELF_SIGNED_CERT' } },
      });
      const url = new URL(`${origin}/contacts`);
      const headers = { authorization: 'Bearer access-token' };
      await expect(http.send({ method: 'GET', url, headers })).rejects.toThrow(/DEPTH_ZERO_SELF_SIGNED_CERT/);
    }
    expect(tunnels).toBeGreaterThanOrEqual(2);
    expect(asked).toEqual([]);
  },
);
