import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, expect, it } from 'vitest';
import { startTcpProxy } from './tcp-proxy.ts';

/** A server that says everything again, after its name. */
async function startEcho(name: string): Promise<{ port: number; sockets: Set<Socket> }> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
    socket.on('data', (said) => socket.write(`${name}:${said}`));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  afterAll(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, sockets };
}

const echo = await startEcho('a');
const proxy = await startTcpProxy(echo.port);

async function open(): Promise<Socket> {
  const socket = connect(proxy.port, '127.0.0.1').on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
}

async function ask(socket: Socket, words: string): Promise<string> {
  socket.write(words);
  return String((await once(socket, 'data'))[0]);
}

it('hands everything on, both ways, and the end', async () => {
  const socket = await open();
  expect(await ask(socket, 'hello')).toBe('a:hello');
  expect(proxy.open).toBe(1);
  const closed = once(proxy.events, 'close');
  socket.end();
  expect(await closed).toEqual([0]);
  expect(echo.sockets.size).toBe(0);
});

it('hands much on, though the other side reads slowly', async () => {
  const socket = await open();
  socket.end('x'.repeat(3_000_000));
  expect((await text(socket)).replaceAll('a:', '').length).toBe(3_000_000);
});

it('goes silent without an end, and hands on later what was said meanwhile', async () => {
  const socket = await open();
  await ask(socket, 'before');
  proxy.silence();
  const held = once(proxy.events, 'held');
  socket.write('meanwhile');
  await held;
  const late = await open();
  late.write('a connection, too');
  await once(proxy.events, 'held');
  expect(socket.bytesRead).toBe('a:before'.length);
  expect(socket.readyState).toBe('open');

  const answer = once(socket, 'data');
  const lateAnswer = once(late, 'data');
  await proxy.pass();
  expect(String((await answer)[0])).toBe('a:meanwhile');
  expect(String((await lateAnswer)[0])).toBe('a:a connection, too');
  socket.destroy();
  late.destroy();
});

it('does not tell, while it is silent, that one side has left', async () => {
  const socket = await open();
  await ask(socket, 'here');
  proxy.silence();
  const held = once(proxy.events, 'held');
  for (const other of echo.sockets) other.destroy();
  await held;
  expect(socket.readyState).toBe('open');
  const closed = once(socket, 'close');
  await proxy.pass();
  await closed;
});

it('lets an answer drip', async () => {
  const socket = await open();
  proxy.slow(1, 1);
  const chunks = [await ask(socket, 'drop')];
  while (chunks.join('') !== 'a:drop') chunks.push(String((await once(socket, 'data'))[0]));
  await proxy.pass();
  expect(chunks.length).toBeGreaterThan(1);
  socket.destroy();
});

it('cuts an answer after its bytes', async () => {
  const socket = await open();
  proxy.cutAfter(3);
  const cut = once(proxy.events, 'cut');
  socket.write('hello');
  expect(await text(socket)).toBe('a:h');
  await cut;
  await proxy.pass();
});

it('refuses, and takes connections at the same port again', async () => {
  const socket = await open();
  const closed = once(socket, 'close');
  await proxy.refuse();
  await closed;
  await expect(once(connect(proxy.port, '127.0.0.1'), 'connect')).rejects.toMatchObject({
    code: 'ECONNREFUSED',
  });
  await proxy.pass();
  const again = await open();
  expect(await ask(again, 'again')).toBe('a:again');
  again.destroy();
});

it('leads to another server', async () => {
  const other = await startEcho('b');
  const socket = await open();
  const closed = once(socket, 'close');
  proxy.lead(other.port);
  proxy.breakOff();
  await closed;
  const moved = await open();
  expect(await ask(moved, 'there?')).toBe('b:there?');
  moved.destroy();
});
