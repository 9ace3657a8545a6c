import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, expect, it } from 'vitest';
import { createHttpSession } from './http-session.ts';

const FORM = `<form method="post" action="/login?a=1&amp;b=2"><input type="hidden" name="_csrf" value="&quot;x&quot;">
  <input type="radio" name="who" value="1"><input type="radio" name="who" value="2" checked>
  <input type="checkbox" name="all" value="yes"><input name="name"><button name="go" value="1">Go</button></form>
  <form action="/search"><input name="q" value="a b"></form>`;

async function listen(handle: (request: IncomingMessage, response: ServerResponse) => void): Promise<string> {
  const server = createServer(handle);
  afterAll(() => server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return `http://127.0.0.1:${address.port}`;
}

/** Answers what it was asked, sets cookies and redirects. */
const echo = await listen(async (request, response) => {
  const url = new URL(request.url ?? '/', 'http://x');
  const body = await text(request);
  if (url.pathname === '/form') response.end(FORM);
  else if (url.pathname === '/to')
    response.writeHead(302, { location: url.searchParams.get('target') ?? '' }).end();
  else if (url.pathname === '/repeat') response.writeHead(307, { location: '/echo' }).end();
  else if (url.pathname === '/cookies') {
    response
      .setHeader('set-cookie', ['sid=1; Path=/; HttpOnly', 'deep=2; Path=/deep', 'gone=3; Max-Age=0'])
      .end();
  } else if (url.pathname === '/clear')
    response.setHeader('set-cookie', 'sid=; Expires=Thu, 01 Jan 1970 00:00:00 GMT').end();
  else
    response.end(
      JSON.stringify({ method: request.method, url: request.url, body, cookie: request.headers.cookie }),
    );
});

it('keeps cookies by path and by host with port, and forgets what has expired', async () => {
  const other = await listen((request, response) =>
    response.end(JSON.stringify(request.headers.cookie ?? null)),
  );
  const session = createHttpSession(echo);
  await session.get('/cookies');
  expect((await session.get('/echo')).json()).toMatchObject({ cookie: 'sid=1' });
  expect((await session.get('/deep/er')).json()).toMatchObject({ cookie: 'sid=1; deep=2' });
  expect((await session.get(`${other}/deep`)).json()).toBeNull();
  expect((await createHttpSession(echo).get('/echo')).json()).not.toHaveProperty('cookie');
  await session.get('/clear');
  expect(session.cookies.get(new URL(echo), 'sid')).toBeUndefined();
});

it('follows redirects as a browser does, or shows where they lead', async () => {
  const session = createHttpSession(echo);
  const followed = await session.post('/to?target=/echo', { a: '1' });
  expect(followed.url.pathname).toBe('/echo');
  expect(followed.json()).toMatchObject({ method: 'GET', body: '' });
  expect((await session.post('/repeat', { a: '1' })).json()).toMatchObject({ method: 'POST', body: 'a=1' });
  const shown = await session.get('/to?target=https://elsewhere.example/x', { follow: false });
  expect([shown.status, shown.location?.href]).toEqual([302, 'https://elsewhere.example/x']);
  await expect(session.get(`/to?target=${encodeURIComponent('/to?target=/to')}`)).rejects.toThrow(
    'redirects',
  );
});

it('submits the forms of a page', async () => {
  const session = createHttpSession(echo);
  const page = await session.get('/form');
  expect((await session.submit(page.form('/login'), { name: 'Zoë & co' })).json()).toMatchObject({
    method: 'POST',
    url: '/login?a=1&b=2',
    body: '_csrf=%22x%22&who=2&name=Zo%C3%AB+%26+co',
  });
  expect((await session.submit(page.form(/^\/sea/))).json()).toMatchObject({
    method: 'GET',
    url: '/search?q=a+b',
  });
  expect(() => page.form('/nowhere')).toThrow('/login, /search');
});
